-- Purpose: page over every entry that Redis knows, also one that no other key points to.
-- KEYS: the queue's base key.
-- ARGV: settings; cursor of the keys, group, cursor within the line of that group ('' : page over keys).
-- Returns: next cursor, {run, group of each entry}, {groups whose line is to be paged by itself}.
-- Keeps: changes nothing but the epoch and the clock; about 500 keys or members per call. What stays in
--   place is seen at least once.
local cursor_of_keys, line, cursor_in_line = text('cursor'), text('group'), text('cursor within the line')
finish()

local PAGE = 500
local found, long = {}, {}

local function add(run, group)
  found[#found + 1] = run
  found[#found + 1] = group
end

local function read_line(group)
  local page = call('ZSCAN', base .. ':line:' .. group, cursor_in_line, 'COUNT', PAGE)
  for index = 1, #page[2], 2 do
    add(page[2][index], group)
  end
  return page[1]
end

local function see_line(group)
  if call('ZCARD', base .. ':line:' .. group) > PAGE or #found > 8 * PAGE then
    long[#long + 1] = group
    return
  end
  for _, run in ipairs(call('ZRANGE', base .. ':line:' .. group, 0, -1)) do
    add(run, group)
  end
end

local function see_hash(run)
  local values = call('HMGET', base .. ':run:' .. run, 'g', 'c', 's')
  if not values[1] then return end
  if values[2] or values[3] or not call('ZSCORE', base .. ':line:' .. values[1], run) then add(run, values[1]) end
end

-- A held run without a hash: no script of ours leaves one behind.
local function see_held(group)
  for _, run in ipairs(call('SRANDMEMBER', base .. ':held:' .. group, PAGE)) do
    if call('EXISTS', base .. ':run:' .. run) == 0 then add(run, group) end
  end
end

local function read_keys()
  local pattern = base:gsub('[%*%?%[%]%^\\]', '\\%0') .. ':*'
  local page = call('SCAN', cursor_of_keys, 'MATCH', pattern, 'COUNT', PAGE)
  for _, key in ipairs(page[2]) do
    local kind, name = key:sub(#base + 1):match('^:(%l+):(.*)$')
    if kind == 'line' then see_line(name) end
    if kind == 'run' then see_hash(name) end
    if kind == 'held' then see_held(name) end
  end
  return page[1]
end

if notice() == 'format' then return redis.error_reply('FORMAT newer') end
local following = cursor_in_line == '' and read_keys() or read_line(line)
return { following, found, long }
