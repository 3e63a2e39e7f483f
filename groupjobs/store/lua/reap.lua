-- Purpose: this worker, this consumer, or the consumers of this worker with this pid are dead now.
-- KEYS: the queue's base key.
-- ARGV: settings; worker, consumer, pid, group ('' or 0 for none), interrupted (the consumer was killed, which
--   costs none of its runs a loss), count, run, fence of each lease of the consumer that lasted longer than
--   its time limit. With a group: mend its held set.
-- Returns: leases healed, whether more wait.
-- Keeps: the same healing as step; bounded; finds nothing the second time.
local worker, nonce = text('worker'), text('consumer')
local pid, group = integer('pid', 0, LARGEST), text('group')
local interrupted = integer('interrupted', 0, 1) == 1
local late = {}
for index = 1, integer('count', 0, 1000) do
  late[index] = { run = member('run'), fence = fence('fence') }
end
finish()
local state = notice()

local function bury_process()
  for _, found in ipairs(all_consumers()) do
    if found.worker == worker and found.pid == pid then
      local _, leaving = slots_of(worker)
      bury_consumer(found.nonce, leaving)
    end
  end
end

local function home_is_leaving()
  local found = consumer_of(nonce)
  local _, leaving = slots_of(found and found.worker or worker)
  return leaving
end

-- Members of the held set without a lease are taken out; leases of the dead are queued for healing; a
-- group that is in no list is put where it belongs.
local function mend()
  for _, run in ipairs(call('SRANDMEMBER', base .. ':held:' .. group, HEAL)) do
    local e = entry(run)
    if not e or not e.c or e.g ~= group then
      free(run, group)
    elseif ghostly(e.c) and state ~= 'rebuild' then
      call('SADD', base .. ':leases:' .. e.c, run)
      local _, leaving = slots_of(e.w)
      bury_consumer(e.c, leaving)
    end
  end
  if not call('ZSCORE', base .. ':ready', group) and not call('ZSCORE', base .. ':later', group) then touch(group) end
  finish_leases()
end

if state == 'format' then return { 0, 0 } end
for _, item in ipairs(late) do
  local e = entry(item.run)
  if e and e.c == nonce and e.f == item.fence then call('HSET', base .. ':run:' .. item.run, 'd', whole(e.f)) end
end
if nonce ~= '' then
  bury_consumer(nonce, interrupted or home_is_leaving())
elseif worker ~= '' and pid > 0 then
  bury_process()
elseif worker ~= '' then
  bury_worker(worker)
end
if group ~= '' then mend() end
local healed, more = heal()
finish_counts()
return { healed, more and 1 or 0 }
