-- Purpose: cancel runs that wait; ask the holders of the others to stop.
-- KEYS: the queue's base key.
-- ARGV: settings; force; count; run, group, life of each. By force: the watchdogs of holders are told as well.
-- Returns: for each run removed, held (a cancel was asked) or absent.
-- Keeps: only an entry of this life or an older one is touched: a late withdraw leaves a retry alone.
local force = integer('force', 0, 1)
local items = {}
for index = 1, integer('count', 0, 1000) do
  items[index] = { run = member('run'), group = text('group'), life = integer('life', 1, LARGEST) }
end
finish()

local function withdraw(item)
  local e = known(item.run, item.group)
  if not e or e.l > item.life then return 'absent' end
  if e.c then
    call('HSET', base .. ':run:' .. item.run, 'k', (force == 1 or e.k == '2') and 2 or 1)
    if force == 1 then call('SADD', base .. ':kills', item.run) end
    return 'held'
  end
  take(item.run, e)
  call('DEL', base .. ':run:' .. item.run)
  return 'removed'
end

if notice() == 'format' then return redis.error_reply('FORMAT newer') end
local words = {}
for index, item in ipairs(items) do
  words[index] = withdraw(item)
end
refresh()
return words
