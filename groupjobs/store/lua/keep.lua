-- Purpose: a consumer re-asserts what it holds, and learns of cancels and of leases lost.
-- KEYS: the queue's base key.
-- ARGV: settings; consumer, worker, pid, number of the last answered step, count; run, group, order, life,
--   fence, alone of each lease.
-- Returns: state, {run, fence of each lost lease}, {run of each cancel asked}. State "refused" or
--   "format": nothing was done.
-- Keeps: never puts anything back; the last number seen only grows.
local nonce, worker = text('consumer'), text('worker')
local pid, number = integer('pid', 0, LARGEST), integer('number', 0, LARGEST)
local leases = {}
for index = 1, integer('count', 0, 10000) do
  leases[index] = lease_read()
end
finish()

local state = notice()
if state == 'format' then return { state, {}, {} } end
if ended(nonce) or ended(worker) then return { 'refused', {}, {} } end
local found = consumer_of(nonce)
if not found then greet(worker) end
register(nonce, worker, pid, math.max(number, found and found.number or 0))
local lost, cancels = {}, {}
for _, item in ipairs(leases) do
  local e = insist(item, nonce, worker)
  if not e then
    lost[#lost + 1] = item.run
    lost[#lost + 1] = whole(item.f)
  elseif e.k then
    cancels[#cancels + 1] = item.run
  end
end
finish_leases()
if state == 'open' and paused() then state = 'paused' end
return { state, lost, cancels }
