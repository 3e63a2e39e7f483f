-- Purpose: the rebuild gives the leases of RUNNING rows back to consumers listed by a living watchdog.
-- KEYS: the queue's base key.
-- ARGV: settings; epoch, count; run, group, order, life, fence, alone, consumer, worker of each lease.
-- Returns: 1 for each lease that is with its consumer now, 0 for the others.
-- Keeps: refused when the epoch has changed; a higher fence is never overridden.
local wanted_epoch, items = text('epoch'), {}
for index = 1, integer('count', 0, 1000) do
  local item = lease_read()
  item.nonce, item.worker = text('consumer'), text('worker')
  items[index] = item
end
finish()

if notice() == 'format' then return redis.error_reply('FORMAT newer') end
if wanted_epoch ~= epoch.number then return redis.error_reply('EPOCH changed') end
local answers = {}
for index, item in ipairs(items) do
  local found = consumer_of(item.nonce)
  local listed = found and found.worker == item.worker and not ghostly(item.nonce)
  answers[index] = listed and insist(item, item.nonce, item.worker) and 1 or 0
end
finish_leases()
return answers
