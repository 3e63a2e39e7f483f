-- Entries and leases. `run:ID` fields: g group, o order, l life, f fence, a alone (0, 1 suspect or
-- reserved alone, 2 always), p priority, t not before (ms), s scheduled, c consumer, w worker, n life
-- asked for while leased, x fence that was healed, i its worker had announced its end, k cancel asked
-- (2: by force), d fence whose run lasted longer than its time limit.
-- A waiting run of life 1 without fence or hint has no hash: its place in `line:G` says it all.
local FIELDS = { 'g', 'o', 'l', 'f', 'a', 'p', 't', 's', 'c', 'w', 'n', 'x', 'i', 'k', 'd' }
local gone, freed = {}, {}
local counts = {}

local function count(name, more)
  counts[name] = (counts[name] or 0) + (more or 1)
end

-- Whether the lease that was healed had lasted longer than its run's time limit.
local function overdue(fence_healed, fence_overdue)
  return fence_overdue and fence_overdue == fence_healed and 1 or 0
end

local function entry(run)
  local values = call('HMGET', base .. ':run:' .. run, unpack(FIELDS))
  if not values[1] then return nil end
  local found = {}
  for index, field in ipairs(FIELDS) do
    found[field] = values[index] or nil
  end
  found.l, found.f, found.a = tonumber(found.l or 1), tonumber(found.f or 0), tonumber(found.a or 0)
  found.n, found.x = tonumber(found.n or 0), tonumber(found.x or 0)
  return found
end

-- The entry of a waiting run, also of one without a hash; nil when Redis does not know the run.
local function waiting(run, group)
  local score = call('ZSCORE', base .. ':line:' .. group, run)
  return score and { g = group, o = score, l = 1, f = 0, a = 0, n = 0, x = 0 }
end

local function known(run, group)
  return entry(run) or waiting(run, group)
end

-- Writes the hash of an entry anew, or none when its place in the line says it all.
local function write(run, e)
  local key = base .. ':run:' .. run
  call('DEL', key)
  local plain = e.l == 1 and e.f == 0 and e.a == 0 and e.n == 0 and e.x == 0
  if plain and not (e.p or e.t or e.c) then return end
  local fields = { 'g', e.g, 'o', e.o, 'l', whole(e.l), 'f', whole(e.f), 'a', e.a }
  for _, field in ipairs({ 'p', 't', 's', 'c', 'w', 'i', 'k', 'd' }) do
    if e[field] then
      fields[#fields + 1] = field
      fields[#fields + 1] = e[field]
    end
  end
  for _, field in ipairs({ 'n', 'x' }) do
    if e[field] > 0 then
      fields[#fields + 1] = field
      fields[#fields + 1] = whole(e[field])
    end
  end
  call('HSET', key, unpack(fields))
end

-- Puts a waiting entry at its place: `at` (ms or nil) keeps it from running before; with `yields` it
-- joins the line only then.
local function put(run, e, at, yields)
  e.c, e.w, e.k, e.n, e.t, e.s = nil, nil, nil, 0, nil, nil
  if at and at > now then
    e.t = whole(at)
    if yields then e.s = 1 end
  end
  if e.s then
    call('ZADD', base .. ':scheduled', at, run)
  else
    call('ZADD', base .. ':line:' .. e.g, e.o, run)
  end
  write(run, e)
  touch(e.g)
end

-- Takes a waiting entry out of its line or of `scheduled`.
local function take(run, e)
  if e.s then
    call('ZREM', base .. ':scheduled', run)
  else
    call('ZREM', base .. ':line:' .. e.g, run)
  end
  touch(e.g)
end

local function free(run, group)
  local runs = freed[group]
  if not runs then
    runs = {}
    freed[group] = runs
    touch(group)
  end
  runs[#runs + 1] = run
end

local function each_thousand(items, apply)
  for first = 1, #items, 1000 do
    apply(unpack(items, first, math.min(first + 999, #items)))
  end
end

local function finish_run(run, group)
  free(run, group)
  count('done')
  gone[#gone + 1] = base .. ':run:' .. run
end

-- Ends a lease: done, retry, back or lost. The caller takes the run from its consumer's set.
local function release(run, e, how, at, yields)
  if how == 'done' and e.n == 0 then return finish_run(run, e.g) end
  free(run, e.g)
  count(how)
  if e.n > e.l then e.l, at = e.n, nil end
  if how == 'lost' then
    e.x, e.a = e.f, math.max(e.a, 1)
  elseif how ~= 'back' then
    e.x, e.i, e.d = 0, nil, nil
    if e.a == 1 then e.a = 0 end
  end
  put(run, e, at, yields)
end

-- Gives the lease of a run to a consumer; the caller has taken it from where it was.
local function lease(run, e, consumer, worker)
  e.c, e.w, e.t, e.s = consumer, worker, nil, nil
  write(run, e)
  call('SADD', base .. ':held:' .. e.g, run)
  call('SADD', base .. ':leases:' .. consumer, run)
  touch(e.g)
end

-- A lease as its consumer, or the row, knows it. It overrides a waiting entry of its own or a lower
-- fence and a lease of a lower fence, never a higher one. Answers the entry, or nil when it is lost.
local function insist(item, consumer, worker)
  local e = known(item.run, item.g)
  if e and e.c == consumer and e.f == item.f then return e end
  if e and (e.f > item.f or (e.c and e.f == item.f)) then return nil end
  local more = e and math.max(e.l, e.n) or 0
  if e and e.c then
    call('SREM', base .. ':leases:' .. e.c, item.run)
  elseif e then
    take(item.run, e)
  end
  local mine = {
    g = e and e.g or item.g, o = e and e.o or item.o, p = e and e.p, l = item.l, f = item.f, a = item.a,
    n = more > item.l and more or 0, x = e and e.x or 0, k = e and e.k,
  }
  lease(item.run, mine, consumer, worker)
  raise_counter(item.f)
  return mine
end

-- Carries out what was collected; every verb that may have changed something ends with it.
local function finish_leases()
  each_thousand(gone, function(...) call('DEL', ...) end)
  for group, runs in pairs(freed) do
    each_thousand(runs, function(...) call('SREM', base .. ':held:' .. group, ...) end)
  end
  gone, freed = {}, {}
  refresh()
end

local function finish_counts()
  for name, number in pairs(counts) do
    call('HINCRBY', base .. ':stats', name, number)
  end
  counts = {}
end
