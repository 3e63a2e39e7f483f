-- Purpose: forget entries whose row is terminal or gone.
-- KEYS: the queue's base key.
-- ARGV: settings; count; run, group, fence, life of each as observed.
-- Returns: how many were dropped.
-- Keeps: only under the fence that was observed, never a newer life, never a live consumer's lease.
local items = {}
for index = 1, integer('count', 0, 1000) do
  items[index] = {
    run = member('run'), group = text('group'), fence = fence('fence'), life = integer('life', 0, LARGEST),
  }
end
finish()

local function drop(item, e)
  if e.c then
    call('SREM', base .. ':leases:' .. e.c, item.run)
    free(item.run, e.g)
  else
    take(item.run, e)
  end
  gone[#gone + 1] = base .. ':run:' .. item.run
end

local state = notice()
if state == 'format' then return redis.error_reply('FORMAT newer') end
local dropped = 0
for _, item in ipairs(items) do
  local e = known(item.run, item.group)
  local same = e and e.f == item.fence and math.max(e.l, e.n) <= item.life
  if same and not (e.c and (state == 'rebuild' or not ghostly(e.c))) then
    drop(item, e)
    dropped = dropped + 1
  end
end
finish_leases()
return dropped
