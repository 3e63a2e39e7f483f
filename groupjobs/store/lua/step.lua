-- Purpose: settle what a consumer did, heal, promote, and reserve its next batch, in one call.
-- KEYS: the queue's base key.
-- ARGV: settings; consumer, worker, pid, number, want; count of runs done, then run, fence of each;
--   count of other outcomes, then run, fence, verb (retry, back, suspect, owner, hold), delay ms,
--   yields, fence_to, owner, owner's worker of each.
-- Returns: state, bells, ended, {run, fence of each stale outcome}, {run, fence, life, alone, group,
--   healed, interrupted, overdue of each reservation}. State "refused" or "format": nothing was done.
-- Keeps: an older number is refused; the last number again changes nothing and answers the leases
--   held; a new one gives back leases that it does not name. Nothing to serve, or as many consumers as
--   there may be, strikes the consumer off in this very call, so that no wake-up falls between.
local nonce, worker = text('consumer'), text('worker')
local pid, number = integer('pid', 0, LARGEST), integer('number', 0, LARGEST)
local want = integer('want', 0, 1000)
local outcomes = {}
for index = 1, integer('done', 0, 10000) do
  outcomes[index] = { run = member('run'), fence = fence('fence'), verb = 'done' }
end
for _ = 1, integer('outcomes', 0, 10000) do
  outcomes[#outcomes + 1] = {
    run = member('run'), fence = fence('fence'), verb = text('verb'), delay = integer('delay', 0, LARGEST),
    yields = integer('yields', 0, 1) == 1, to = fence('fence_to'), owner = text('owner'), home = text('owner_worker'),
  }
end
finish()

-- The row says that the run is with another consumer: the lease becomes theirs.
local function hand_over(run, e, outcome)
  local owner = outcome.owner
  call('SREM', base .. ':leases:' .. nonce, run)
  e.f = outcome.to
  lease(run, e, owner, outcome.home)
  raise_counter(outcome.to)
  if not consumer_of(owner) then call('ZADD', base .. ':dead', 'NX', 0, owner) end
end

local function give_back(run, e, outcome)
  if outcome.verb == 'suspect' then e.a = math.max(e.a, 1) end
  if outcome.to > e.f then
    e.f = outcome.to
    raise_counter(e.f)
  end
  release(run, e, 'back', now + outcome.delay)
end

local verbs = {
  done = function(run, e) release(run, e, 'done') end,
  retry = function(run, e, outcome) release(run, e, 'retry', now + outcome.delay, outcome.yields) end,
  back = give_back,
  suspect = give_back,
  owner = hand_over,
  hold = function() end,
}
local stays = { hold = true, owner = true }
for _, outcome in ipairs(outcomes) do
  if not verbs[outcome.verb] then refuse('verb') end
end

local function held_now()
  local list, flat = {}, {}
  for _, run in ipairs(call('SMEMBERS', base .. ':leases:' .. nonce)) do
    local e = entry(run)
    if e and e.c == nonce then list[#list + 1] = { run = run, e = e } end
  end
  table.sort(list, function(one, other) return one.e.f < other.e.f end)
  for _, held in ipairs(list) do
    local e = held.e
    for _, value in ipairs({ held.run, whole(e.f), whole(e.l), e.a, e.g, whole(e.x), tonumber(e.i or 0),
      overdue(whole(e.x), e.d) }) do
      flat[#flat + 1] = value
    end
  end
  return flat
end

-- Carries one outcome out; false when it is stale. A plain end needs four fields of the entry only.
local function carry_out(run, outcome)
  local found = call('HMGET', base .. ':run:' .. run, 'c', 'f', 'n', 'g')
  if found[1] ~= nonce or tonumber(found[2]) ~= outcome.fence then return false end
  if outcome.verb == 'done' and not found[3] then
    finish_run(run, found[4])
  else
    verbs[outcome.verb](run, entry(run), outcome)
  end
  return true
end

local function settle()
  local stale_ones, named, left = {}, {}, {}
  for _, outcome in ipairs(outcomes) do
    local run = outcome.run
    if not named[run] and carry_out(run, outcome) then
      named[run] = true
      if not stays[outcome.verb] then left[#left + 1] = run end
    else
      stale_ones[#stale_ones + 1] = run
      stale_ones[#stale_ones + 1] = whole(outcome.fence)
    end
  end
  each_thousand(left, function(...) call('SREM', base .. ':leases:' .. nonce, ...) end)
  for _, run in ipairs(call('SMEMBERS', base .. ':leases:' .. nonce)) do
    if not named[run] then
      local e = entry(run)
      call('SREM', base .. ':leases:' .. nonce, run)
      if e and e.c == nonce then release(run, e, 'back') end
    end
  end
  finish_leases()
  return stale_ones
end

local function reply_of(batch)
  local flat = {}
  for _, item in ipairs(batch) do
    for _, value in ipairs({ item.run, item.fence, item.life, item.alone, item.group, item.healed, item.interrupted,
      item.overdue }) do
      flat[#flat + 1] = value
    end
  end
  return flat
end

local state = notice()
if state == 'format' then return { 'format', 0, 0, {}, {} } end
bury_silent()
local known_consumer = consumer_of(nonce)
if ended(nonce) or ended(worker) or (known_consumer and number < known_consumer.number) then
  return { 'refused', 0, 0, {}, {} }
end
if known_consumer and number == known_consumer.number then
  return { 'repeat', 0, 0, {}, held_now() }
end
-- A bell that came twice makes no consumer beyond the limit.
local full = not known_consumer and #outcomes == 0 and settings.consumers > 0
  and call('HLEN', base .. ':consumers') >= settings.consumers
if not known_consumer then greet(worker) end
if not known_consumer or known_consumer.number == 0 then answered() end
register(nonce, worker, pid, number)
local stale_ones = settle()
heal()
promote()
if state == 'open' and paused() then state = 'paused' end
local batch = state == 'open' and want > 0 and not full and reserve(nonce, worker, want) or {}
local struck = want > 0 and state ~= 'rebuild' and call('EXISTS', base .. ':leases:' .. nonce) == 0
if struck then bury_consumer(nonce) end
if #batch > 0 then call('HSET', base .. ':stats', 'served ' .. worker, whole(clock)) end
finish_counts()
return { state, bells(), struck and 1 or 0, stale_ones, reply_of(batch) }
