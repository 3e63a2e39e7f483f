-- Reads ARGV in order and refuses, by name, what is missing or out of range. Everything is read
-- before the first write. ARGV begins with the queue's settings: ttl ms, consumers (0: by slots),
-- group_concurrency, rate count (0: none), rate period ms.
local call = redis.call
local base = KEYS[1]
local find = string.find
local LARGEST = 9007199254740992
local cursor = 0

local function refuse(name)
  error(redis.error_reply('BADARG ' .. name))
end

local function whole(number)
  return string.format('%.0f', number)
end

local function text(name)
  cursor = cursor + 1
  return ARGV[cursor] or refuse(name)
end

local function integer(name, low, high)
  local given = text(name)
  local number = #given <= 17 and not find(given, '[^%d%-]') and tonumber(given)
  if not number or number < low or number > high then refuse(name) end
  if #given > 15 and whole(number) ~= given then refuse(name) end
  return number
end

local function optional(name, low, high)
  if ARGV[cursor + 1] ~= '' then return integer(name, low, high) end
  cursor = cursor + 1
end

local function fence(name)
  return integer(name, 0, LARGEST)
end

-- A run's id is a member of twenty digits, at most 2^63 - 1.
local function member(name)
  local given = text(name)
  if #given ~= 20 or given:find('%D') or given > '09223372036854775807' then refuse(name) end
  return given
end

local function order(name)
  integer(name, -LARGEST, LARGEST)
  return ARGV[cursor]
end

local function lease_read()
  return {
    run = member('run'), g = text('group'), o = order('order'), l = integer('life', 1, LARGEST),
    f = fence('fence'), a = integer('alone', 0, 2),
  }
end

local function finish()
  if cursor ~= #ARGV then refuse('count') end
end

local settings = {
  ttl = integer('ttl', 1, LARGEST),
  consumers = integer('consumers', 0, LARGEST),
  limit = integer('group_concurrency', 1, LARGEST),
  count = integer('rate', 0, LARGEST),
  period = integer('rate period', 0, LARGEST),
}
