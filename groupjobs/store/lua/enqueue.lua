-- Purpose: publish runs: each joins its line, or `scheduled` when it yields until it is due.
-- KEYS: the queue's base key.
-- ARGV: settings; epoch ('' for any), count; run, group, order, priority, life, fence, alone, due ms,
--   delay ms, yields of each ('' for no due, no delay).
-- Returns: bells, state.
-- Keeps: a waiting run keeps its place (a newer life and hints are taken over); a leased one is marked
--   again, honoured when its lease ends. The fence counter rises above every fence told.
local wanted_epoch = text('epoch')
local publications, highest = {}, 0
for index = 1, integer('count', 0, 1000) do
  local p = {
    run = member('run'), g = text('group'), o = order('order'), priority = integer('priority', -1000000, 1000000),
    l = integer('life', 1, LARGEST), f = fence('fence'), a = integer('alone', 0, 2), n = 0, x = 0,
    due = optional('due', 0, LARGEST), delay = optional('delay', 0, LARGEST), yields = integer('yields', 0, 1) == 1,
  }
  if p.priority ~= 0 then p.p = p.priority end
  publications[index] = p
  highest = math.max(highest, p.f)
end
finish()

local function mark_again(p, e)
  if p.l > e.n then call('HSET', base .. ':run:' .. p.run, 'n', whole(p.l)) end
end

-- Lifts a waiting entry; only a newer life brings a new time.
local function lift(p, e, at)
  local newer = p.l > e.l
  if not newer and p.f <= e.f and p.a <= e.a then return end
  e.l, e.f, e.a = math.max(e.l, p.l), math.max(e.f, p.f), math.max(e.a, p.a)
  if newer then
    take(p.run, e)
    e.x, e.i, e.d = 0, nil, nil
    put(p.run, e, at, p.yields)
  else
    write(p.run, e)
  end
end

local function join(p, at)
  local later_on = at and at > now
  if later_on and p.yields then
    local e = waiting(p.run, p.g)
    if e then return lift(p, e, at) end
    return put(p.run, p, at, true)
  end
  local added = call('ZADD', base .. ':line:' .. p.g, 'NX', p.o, p.run)
  local plain = p.l == 1 and p.f == 0 and p.a == 0 and not p.p and not later_on
  if added == 0 then
    if not plain then lift(p, waiting(p.run, p.g), at) end
  elseif not plain then
    p.t = later_on and whole(at) or nil
    write(p.run, p)
  end
  if added == 1 then touch(p.g, p.priority) end
end

local function publish(p)
  local at = p.due or (p.delay and now + p.delay)
  local e = call('EXISTS', base .. ':run:' .. p.run) == 1 and entry(p.run)
  if e and e.c then
    mark_again(p, e)
  elseif e and (e.s or call('ZSCORE', base .. ':line:' .. e.g, p.run)) then
    lift(p, e, at)
  else
    if e then call('DEL', base .. ':run:' .. p.run) end -- it is in no place, so what it says is old
    join(p, at)
  end
end

local state = notice()
if state == 'format' then return { 0, 'format' } end
if wanted_epoch ~= '' and wanted_epoch ~= epoch.number then return redis.error_reply('EPOCH changed') end
raise_counter(highest)
for _, p in ipairs(publications) do
  publish(p)
end
refresh()
return { bells(), state }
