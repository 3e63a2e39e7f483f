-- Purpose: a worker's periodic look: promote, heal, strike off the forgotten, answer bells due.
-- KEYS: the queue's base key.
-- ARGV: settings; worker, free slots.
-- Returns: state, epoch, bells, ready groups, ms until something is due ('' for nothing), unserved
--   (ready groups wait, this worker has free slots and no bell is on its way), rebuilding ms.
-- Keeps: bounded work; a consumer without leases that was not seen for a TTL no longer counts.
local worker, free_slots = text('worker'), integer('free', 0, LARGEST)
finish()

local PATIENCE = 200

local function strike_forgotten()
  for _, found in ipairs(all_consumers()) do
    if found.seen < clock - settings.ttl and call('EXISTS', base .. ':leases:' .. found.nonce) == 0 then
      bury_consumer(found.nonce)
    end
  end
end

local function wait_of(more)
  if more then return 0 end
  local nearest
  for _, name in ipairs({ ':later', ':scheduled' }) do
    local first = call('ZRANGE', base .. name, 0, 0, 'WITHSCORES')[2]
    if first then nearest = math.min(nearest or LARGEST, math.max(0, tonumber(first) - now)) end
  end
  return nearest or ''
end

local function unserved()
  local wanted, outstanding, at = demand()
  if free_slots == 0 or wanted <= 0 or ended(worker) then return 0 end
  return (outstanding == 0 or clock - at >= PATIENCE) and 1 or 0
end

local state = notice()
if state == 'format' then return { state, '', 0, 0, '', 0, 0 } end
call('ZREMRANGEBYSCORE', base .. ':ended', '-inf', clock)
call('ZREMRANGEBYSCORE', base .. ':tokens', '-inf', now)
bury_silent()
strike_forgotten()
local _, more = heal()
promote()
finish_counts()
local lonely = unserved()
local due = bells()
return { state, epoch.number, due, call('ZCARD', base .. ':ready'), wait_of(more), lonely, rebuilding() }
