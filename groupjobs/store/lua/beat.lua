-- Purpose: a worker is alive; its watchdog lists the executions that it watches.
-- KEYS: the queue's base key.
-- ARGV: settings; worker, slots, leaving, count; consumer, pid of each execution.
-- Returns: alive, state, epoch, {consumer, pid of each registered consumer of this worker}, {consumer, run
--   of each lease of this worker that is cancelled by force}.
-- Keeps: an incarnation once judged dead stays dead. Listed executions are registered again (after a
--   loss of memory) or confirmed in this epoch, except tombstoned ones.
local worker, slots, leaving = text('worker'), integer('slots', 0, LARGEST), integer('leaving', 0, 1)
local listed = {}
for index = 1, integer('count', 0, 10000) do
  listed[index] = { nonce = text('consumer'), pid = integer('pid', 0, LARGEST) }
end
finish()

local state = notice()
if state == 'format' then return { 1, state, '', {}, {} } end
if ended(worker) then return { 0, state, epoch.number, {}, {} } end
call('ZADD', base .. ':workers', clock, worker)
local slots_before, leaving_before = slots_of(worker)
call('HSET', base .. ':slots', worker, whole(slots) .. ' ' .. leaving .. ' ' .. whole(now))
if slots ~= slots_before or (leaving == 1) ~= leaving_before then sum_slots() end
for _, execution in ipairs(listed) do
  local found = consumer_of(execution.nonce)
  if not ended(execution.nonce) and (not found or found.epoch ~= epoch.number) then
    register(execution.nonce, worker, execution.pid, found and found.number or 0)
  end
end
local registered = {}
for _, found in ipairs(all_consumers()) do
  if found.worker == worker and found.epoch == epoch.number then
    registered[#registered + 1] = found.nonce
    registered[#registered + 1] = whole(found.pid)
  end
end
local kills = {}
for _, run in ipairs(call('SRANDMEMBER', base .. ':kills', 100)) do
  local e = entry(run)
  if not e or not e.c or e.k ~= '2' then
    call('SREM', base .. ':kills', run)
  elseif e.w == worker then
    kills[#kills + 1] = e.c
    kills[#kills + 1] = run
  end
end
return { 1, state, epoch.number, registered, kills }
