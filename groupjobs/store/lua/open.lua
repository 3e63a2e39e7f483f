-- Purpose: the rebuild is done: open the queue, if the epoch is still this one.
-- KEYS: the queue's base key.
-- ARGV: settings; epoch.
-- Returns: 1 when the queue is open under this epoch, else 0.
-- Keeps: consumers that neither stepped, kept nor were listed in this epoch are dead (they came with an
--   old snapshot).
local wanted_epoch = text('epoch')
finish()

local state = notice()
if state == 'format' or wanted_epoch ~= epoch.number then return 0 end
if state == 'rebuild' then
  for _, found in ipairs(all_consumers()) do
    if found.epoch ~= epoch.number then bury_consumer(found.nonce) end
  end
  call('HSET', base .. ':epoch', 'state', 'open')
  epoch.state = 'open'
end
return 1
