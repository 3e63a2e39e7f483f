-- The only writer of `ready` and `later`. A group is in `ready` iff its line is not empty, its flag
-- does not hold it, its leases are below its limit and its head's time has come; it is in `later` iff
-- only time (the head's, or the next token's) keeps it. Verbs call `touch` and, at the end, `refresh`.
local touched, touched_list = {}, {}
local flags = call('HLEN', base .. ':groups') > 0
local timed = call('EXISTS', base .. ':later') == 1
local default_rules = {
  held = false, limit = settings.limit, count = settings.count, period = settings.period, version = 0,
}

-- `groups` hash: version, held, limit, rate count, rate period ms (0: the queue's default).
local function rules(group)
  local found = flags and call('HGET', base .. ':groups', group)
  if not found then return default_rules end
  local version, held, limit, count, period = found:match('^(%d+) (%d) (%d+) (%d+) (%d+)$')
  local own = tonumber(count) > 0
  return {
    version = tonumber(version),
    held = held == '1',
    limit = limit == '0' and settings.limit or tonumber(limit),
    count = own and tonumber(count) or settings.count,
    period = own and tonumber(period) or settings.period,
  }
end

local function paused()
  return flags and rules('').held
end

-- Token bucket as one number per group: `tokens` holds when the bucket will be full again.
local function full_at(group, rule)
  local stored = tonumber(call('ZSCORE', base .. ':tokens', group) or 0)
  return math.max(now, math.min(stored, now + rule.period))
end

local function token_at(group, rule)
  if rule.count == 0 then return 0 end
  return math.ceil(full_at(group, rule) - rule.period + rule.period / rule.count)
end

local function take_tokens(group, rule, taken)
  if rule.count == 0 then return end
  call('ZREMRANGEBYSCORE', base .. ':tokens', '-inf', now)
  call('ZADD', base .. ':tokens', full_at(group, rule) + taken * rule.period / rule.count, group)
end

local function leave(group)
  call('ZREM', base .. ':ready', group)
  if timed then call('ZREM', base .. ':later', group) end
end

local function place(group, lift)
  local head = call('ZRANGE', base .. ':line:' .. group, 0, 0)[1]
  if not head then return leave(group) end
  local rule = rules(group)
  if rule.held or call('SCARD', base .. ':held:' .. group) >= rule.limit then return leave(group) end
  local hints = call('HMGET', base .. ':run:' .. head, 't', 'p')
  local at = math.max(tonumber(hints[1] or 0), token_at(group, rule))
  if at > now then
    call('ZREM', base .. ':ready', group)
    call('ZADD', base .. ':later', at, group)
    timed = true
  else
    local priority = math.max(tonumber(hints[2] or 0), lift or -LARGEST)
    if timed then call('ZREM', base .. ':later', group) end
    call('ZADD', base .. ':ready', 'LT', now - priority * 1000, group)
  end
end

-- `lift`: the priority of a publication that lifts a group already ready.
local function touch(group, lift)
  local before = touched[group]
  if not before then touched_list[#touched_list + 1] = group end
  if not before or (lift and (before == true or lift > before)) then touched[group] = lift or true end
end

local function refresh()
  for _, group in ipairs(touched_list) do
    local lift = touched[group]
    place(group, lift ~= true and lift or nil)
  end
  touched, touched_list = {}, {}
end
