-- Who is alive. `consumers` hash: number of the last step seen, pid, clock last seen, epoch, worker.
-- `workers` zset: worker -> clock of its last beat; `slots` hash: slots, leaving, TIME of the beat (ms).
-- `ended` zset: tombstones of consumers and incarnations -> clock at which they may be forgotten.
local DAY = 86400000

local function parse(nonce, found)
  local number, pid, seen, number_of_epoch, worker = found:match('^(%d+) (%d+) (%d+) (%d+) (.*)$')
  return {
    nonce = nonce, number = tonumber(number), pid = tonumber(pid), seen = tonumber(seen),
    epoch = number_of_epoch, worker = worker,
  }
end

local function consumer_of(nonce)
  local found = call('HGET', base .. ':consumers', nonce)
  return found and parse(nonce, found)
end

local function all_consumers()
  local flat, list = call('HGETALL', base .. ':consumers'), {}
  for index = 1, #flat, 2 do
    list[#list + 1] = parse(flat[index], flat[index + 1])
  end
  return list
end

local function register(nonce, worker, pid, number)
  call('ZREM', base .. ':dead', nonce)
  call('HSET', base .. ':consumers', nonce,
    table.concat({ whole(number), whole(pid), whole(clock), epoch.number, worker }, ' '))
end

-- A worker whose watchdog has not beaten yet (a fresh one, or after a flush) gets one TTL.
local function greet(worker)
  call('ZADD', base .. ':workers', 'NX', clock, worker)
end

local function ended(name)
  return call('ZSCORE', base .. ':ended', name)
end

local function stale(worker)
  local beat = call('ZSCORE', base .. ':workers', worker)
  return not beat or tonumber(beat) < clock - settings.ttl
end

-- A lease is a ghost when its consumer is unknown, was not confirmed in this epoch, or when its
-- worker no longer beats.
local function ghostly(nonce)
  local known_consumer = consumer_of(nonce)
  return not known_consumer or known_consumer.epoch ~= epoch.number or stale(known_consumer.worker)
end

local function slots_of(worker)
  local slots, leaving, at = string.match(call('HGET', base .. ':slots', worker) or '', '^(%d+) (%d) (%d+)$')
  return tonumber(slots or 0), leaving == '1', tonumber(at or 0)
end

-- Keeps the sum of the live workers' slots, which bells need at every call.
local function sum_slots()
  local sum = 0
  for _, found in ipairs(call('HVALS', base .. ':slots')) do
    local slots, leaving = found:match('^(%d+) (%d)')
    if leaving == '0' then sum = sum + tonumber(slots) end
  end
  call('HSET', base .. ':bells', 'slots', sum)
end
