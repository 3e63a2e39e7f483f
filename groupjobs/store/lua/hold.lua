-- Purpose: hold or open a group, or set its overrides; with group '' pause or resume the whole queue.
-- KEYS: the queue's base key.
-- ARGV: settings; group, version, held, group_concurrency, rate count, rate period ms (0: the queue's own).
-- Returns: 1 when Redis now says this version, 0 when it knows a newer one.
-- Keeps: holds and resumes may cross on their way: the version decides.
local group, version, held = text('group'), integer('version', 0, LARGEST), integer('held', 0, 1)
local limit = integer('group_concurrency', 0, LARGEST)
local many, period = integer('rate count', 0, LARGEST), integer('rate period', 0, LARGEST)
if many > 0 and period == 0 then refuse('rate period') end
finish()

if notice() == 'format' then return redis.error_reply('FORMAT newer') end
if version < rules(group).version then return 0 end
call('HSET', base .. ':groups', group,
  table.concat({ whole(version), held, whole(limit), whole(many), whole(period) }, ' '))
flags = true
if group ~= '' then
  touch(group)
  refresh()
end
return 1
