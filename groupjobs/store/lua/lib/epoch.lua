-- The queue's clock and epoch. `notice` comes first in every script: it advances the clock (which
-- stands still while Redis is down and survives a step of TIME), and begins a new epoch in state
-- "rebuild" when there is none or when it was made under another server run_id.
local FORMAT = 1
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local clock = 0
local epoch = { state = '', number = '', since = 0 }

local function raise_counter(number)
  local key = base .. ':fence'
  if number > tonumber(call('GET', key) or 0) then call('SET', key, whole(number)) end
end

local function advance()
  local before, last = string.match(call('GET', base .. ':clock') or '', '^(%d+) (%d+)$')
  local passed = now - tonumber(last or now)
  clock = tonumber(before or 0) + math.floor(math.max(0, math.min(passed, settings.ttl / 3)))
  if passed ~= 0 or not before then
    call('SET', base .. ':clock', whole(clock) .. ' ' .. whole(now))
  end
end

local function begin_epoch(server, previous)
  local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
  epoch.state, epoch.since = 'rebuild', clock
  epoch.number = whole(math.max(micros, tonumber(previous or 0) + 1))
  call('HSET', base .. ':epoch', 'server', server, 'format', FORMAT, 'state', 'rebuild',
    'number', epoch.number, 'since', whole(clock))
  raise_counter(micros)
end

-- Answers the state: open, rebuild, or format (made by a newer release: touch nothing).
local function notice()
  local server = call('INFO', 'server'):match('run_id:(%x+)')
  local known = call('HMGET', base .. ':epoch', 'server', 'format', 'state', 'number', 'since')
  if known[2] and tonumber(known[2]) > FORMAT then
    epoch.state = 'format'
    return 'format'
  end
  advance()
  if known[1] == server then
    epoch.state, epoch.number, epoch.since = known[3], known[4], tonumber(known[5])
  else
    begin_epoch(server, known[4])
  end
  return epoch.state
end

local function rebuilding()
  return epoch.state == 'rebuild' and clock - epoch.since or 0
end
