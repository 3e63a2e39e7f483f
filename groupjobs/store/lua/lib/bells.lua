-- Bells: one for each ready group that no consumer serves, up to the limit of consumers. `bells` hash:
-- n outstanding, at (clock of the last ring), pause (ms after which an unanswered bell counts as lost;
-- doubles up to 8 s), slots (sum over the live workers that do not leave).
local PAUSE, LONGEST = 500, 8000
local BUSY = 150

-- Consumers that were not seen for so long are busy with long runs and take no group soon.
local function busy()
  local number = 0
  for _, found in ipairs(all_consumers()) do
    if found.seen <= clock - BUSY then number = number + 1 end
  end
  return number
end

-- How many more consumers could work now; then outstanding bells, clock of the last ring, and pause.
local function demand()
  if epoch.state ~= 'open' or paused() then return 0 end
  local ready = call('ZCARD', base .. ':ready')
  if ready == 0 then return 0 end
  local found = call('HMGET', base .. ':bells', 'n', 'at', 'pause', 'slots')
  local most = settings.consumers > 0 and settings.consumers or math.max(1, tonumber(found[4] or 0))
  local live = call('HLEN', base .. ':consumers')
  local wanted = math.min(ready, most) - live
  if live > 0 and live < most and ready < most then wanted = math.min(ready - live + busy(), most - live) end
  return wanted, tonumber(found[1] or 0), tonumber(found[2] or 0), tonumber(found[3] or PAUSE)
end

-- Answers how many bells to ring now, and books them.
local function bells()
  local wanted, outstanding, at, pause = demand()
  if wanted <= 0 then return 0 end
  if outstanding > 0 and clock - at >= pause then
    outstanding, pause = 0, math.min(2 * pause, LONGEST)
  end
  if wanted <= outstanding then return 0 end
  if outstanding == 0 then at = clock end
  call('HSET', base .. ':bells', 'n', wanted, 'at', whole(at), 'pause', pause)
  return wanted - outstanding
end

-- A new consumer answers a bell.
local function answered()
  local outstanding = tonumber(call('HGET', base .. ':bells', 'n') or 0)
  if outstanding > 0 then
    call('HSET', base .. ':bells', 'n', outstanding - 1, 'pause', PAUSE)
  end
end
