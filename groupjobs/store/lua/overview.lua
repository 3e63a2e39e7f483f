-- Purpose: the state of the queue as a whole, for people and metrics.
-- KEYS: the queue's base key.
-- ARGV: settings.
-- Returns: state, epoch, rebuilding ms, paused, ready, later, scheduled, dead consumers, held groups;
--   {worker, beat age ms, slots, leaving, served age ms or '' of each}; {consumer, worker, pid, seen age
--   ms, leases of each}; {name, number of each counter}; {ms that the first ready group waits or '', age of
--   the epoch in ms, ms since a full sweep ended or ''}.
-- Keeps: changes nothing but the epoch and the clock.
finish()

local WEEK = 604800000

local function workers()
  local flat, list = call('ZRANGE', base .. ':workers', 0, -1, 'WITHSCORES'), {}
  for index = 1, #flat, 2 do
    local slots, leaving = slots_of(flat[index])
    local served = call('HGET', base .. ':stats', 'served ' .. flat[index])
    list[#list + 1] = { flat[index], clock - tonumber(flat[index + 1]), slots, leaving and 1 or 0,
      served and clock - tonumber(served) or '' }
  end
  return list
end

local function consumers()
  local list = {}
  for index, found in ipairs(all_consumers()) do
    list[index] = { found.nonce, found.worker, whole(found.pid), clock - found.seen,
      call('SCARD', base .. ':leases:' .. found.nonce) }
  end
  return list
end

local function counters()
  local flat, list = call('HGETALL', base .. ':stats'), {}
  for index = 1, #flat, 2 do
    if flat[index]:sub(1, 7) ~= 'served ' then
      list[#list + 1] = flat[index]
      list[#list + 1] = flat[index + 1]
    end
  end
  return list
end

local function held_groups()
  local held = paused() and -1 or 0
  for _, text_of_rules in ipairs(call('HVALS', base .. ':groups')) do
    if text_of_rules:match('^%d+ 1') then held = held + 1 end
  end
  return held
end

-- How long the group that is served next has been ready: its rank without its head's priority.
local function ready_age()
  local first = call('ZRANGE', base .. ':ready', 0, 0, 'WITHSCORES')
  if not first[1] then return '' end
  local head = call('ZRANGE', base .. ':line:' .. first[1], 0, 0)[1]
  local priority = head and call('HGET', base .. ':run:' .. head, 'p') or 0
  return math.max(0, now - tonumber(first[2]) - tonumber(priority or 0) * 1000)
end

-- What is left of the life of a key that the end of a sweep makes tells how long ago that was.
local function sweep_age()
  local left = call('PTTL', base .. ':turn:swept')
  return left > 0 and WEEK - left or ''
end

local state = notice()
if state == 'format' then return redis.error_reply('FORMAT newer') end
return { state, epoch.number, rebuilding(), paused() and 1 or 0, call('ZCARD', base .. ':ready'),
  call('ZCARD', base .. ':later'), call('ZCARD', base .. ':scheduled'), call('ZCARD', base .. ':dead'),
  held_groups(), workers(), consumers(), counters(), { ready_age(), clock - epoch.since, sweep_age() } }
