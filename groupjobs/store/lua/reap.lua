-- Purpose: this worker, this consumer, or the consumers of this worker with this pid are dead now.
-- KEYS: the queue's base key.
-- ARGV: settings; worker, consumer, pid, group ('' or 0 for none). With a group: mend its held set.
-- Returns: leases healed, whether more wait.
-- Keeps: the same healing as step; bounded; finds nothing the second time.
local worker, nonce = text('worker'), text('consumer')
local pid, group = integer('pid', 0, LARGEST), text('group')
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

-- Members of the held set without a lease are taken out; leases of the dead are queued for healing.
local function mend()
  for _, run in ipairs(call('SRANDMEMBER', base .. ':held:' .. group, HEAL)) do
    local e = entry(run)
    if not e or not e.c or e.g ~= group then
      free(run, group)
    elseif ghostly(e.c) and state ~= 'rebuild' then
      call('SADD', base .. ':leases:' .. e.c, run)
      bury_consumer(e.c)
    end
  end
  finish_leases()
end

if state == 'format' then return { 0, 0 } end
if nonce ~= '' then
  bury_consumer(nonce, home_is_leaving())
elseif worker ~= '' and pid > 0 then
  bury_process()
elseif worker ~= '' then
  bury_worker(worker)
end
if group ~= '' then mend() end
local healed, more = heal()
finish_counts()
return { healed, more and 1 or 0 }
