-- Purpose: the state of the queue as a whole, for people and metrics.
-- KEYS: the queue's base key.
-- ARGV: settings.
-- Returns: state, epoch, rebuilding ms, paused, ready, later, scheduled, dead consumers, held groups;
--   {worker, beat age ms, slots, leaving, served age ms or '' of each}; {consumer, worker, pid, seen age
--   ms, leases of each}; {name, number of each counter}.
-- Keeps: changes nothing but the epoch and the clock.
finish()

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

local state = notice()
if state == 'format' then return redis.error_reply('FORMAT newer') end
return { state, epoch.number, rebuilding(), paused() and 1 or 0, call('ZCARD', base .. ':ready'),
  call('ZCARD', base .. ':later'), call('ZCARD', base .. ':scheduled'), call('ZCARD', base .. ':dead'),
  held_groups(), workers(), consumers(), counters() }
