-- The one place where ghosts are healed. Burying a worker or a consumer makes it a tombstone and queues
-- its leases in `dead` (consumer -> 1 if the worker had announced its end); healing works that off.
local HEAL = 40

local function bury_consumer(nonce, leaving)
  call('HDEL', base .. ':consumers', nonce)
  call('ZADD', base .. ':ended', clock + 4 * settings.ttl, nonce)
  if call('EXISTS', base .. ':leases:' .. nonce) == 1 then
    call('ZADD', base .. ':dead', 'NX', leaving and 1 or 0, nonce)
  end
end

local function bury_worker(worker)
  local _, leaving = slots_of(worker)
  for _, known_consumer in ipairs(all_consumers()) do
    if known_consumer.worker == worker then bury_consumer(known_consumer.nonce, leaving) end
  end
  call('ZREM', base .. ':workers', worker)
  call('HDEL', base .. ':slots', worker)
  call('HDEL', base .. ':stats', 'served ' .. worker)
  call('ZADD', base .. ':ended', clock + DAY, worker)
  sum_slots()
end

local function bury_silent()
  local silent = call('ZRANGEBYSCORE', base .. ':workers', '-inf', '(' .. whole(clock - settings.ttl), 'LIMIT', 0, 4)
  for _, worker in ipairs(silent) do
    bury_worker(worker)
  end
end

-- Puts up to HEAL leases of the dead back at their places. Answers how many, and whether more wait.
local function heal()
  local healed = 0
  while healed < HEAL do
    local dead = call('ZRANGE', base .. ':dead', 0, 0, 'WITHSCORES')
    if not dead[1] then break end
    local runs = call('SPOP', base .. ':leases:' .. dead[1], HEAL - healed)
    if #runs == 0 then call('ZREM', base .. ':dead', dead[1]) end
    for _, run in ipairs(runs) do
      local e = entry(run)
      if e and e.c == dead[1] then
        e.i = dead[2] == '1' and 1 or nil
        count('healed')
        release(run, e, 'lost')
        healed = healed + 1
      end
    end
  end
  finish_leases()
  return healed, call('EXISTS', base .. ':dead') == 1
end
