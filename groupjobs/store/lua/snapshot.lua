-- Purpose: what Redis knows of these runs and their groups, for status and recovery.
-- KEYS: the queue's base key.
-- ARGV: settings; count; run, group of each.
-- Returns: state, epoch, rebuilding ms, {run, place, life, fence, alone, again, consumer, worker, ghost,
--   silent, healed, wait ms, interrupted, overdue of each known run}, {group, ready, later ms or '', waiting, {held
--   runs}, held flag, version, {strays: held members without a live lease} of each group}.
-- Keeps: changes nothing but the epoch and the clock; at most 50 runs.
local asked = {}
for index = 1, integer('count', 0, 50) do
  asked[index] = { run = member('run'), group = text('group') }
end
finish()

local ghosts = {}
local function ghost(nonce)
  if ghosts[nonce] == nil then ghosts[nonce] = ghostly(nonce) end
  return ghosts[nonce]
end

local function silent(worker)
  local _, _, at = slots_of(worker)
  return at > 0 and now - at > settings.ttl and 1 or 0
end

local function place_of(e)
  if e.c then return 'leased' end
  return e.s and 'scheduled' or 'line'
end

-- Whether the lease that ended, or the ghost that holds it, belonged to a worker that had announced its end.
local function interrupted(e)
  if not e.c then return e.i end
  local _, leaving = slots_of(e.w)
  return leaving or call('ZSCORE', base .. ':dead', e.c) == '1'
end

local function describe(run, e)
  local wait = math.max(0, tonumber(e.t or now) - now)
  return { run, place_of(e), whole(e.l), whole(e.f), e.a, whole(e.n), e.c or '', e.w or '',
    e.c and ghost(e.c) and 1 or 0, e.w and silent(e.w) or 0, whole(e.x), wait, interrupted(e) and 1 or 0,
    overdue(e.c and whole(e.f) or whole(e.x), e.d) }
end

local function in_place(run, e)
  return e.c or e.s or call('ZSCORE', base .. ':line:' .. e.g, run)
end

local function strays_of(held)
  local strays = {}
  for _, run in ipairs(held) do
    local nonce = call('HGET', base .. ':run:' .. run, 'c')
    if not nonce or ghost(nonce) then strays[#strays + 1] = run end
  end
  return strays
end

local function group_state(group)
  local rule = rules(group)
  local held = call('SMEMBERS', base .. ':held:' .. group)
  local later = call('ZSCORE', base .. ':later', group)
  return { group, call('ZSCORE', base .. ':ready', group) and 1 or 0,
    later and math.max(0, tonumber(later) - now) or '', call('ZCARD', base .. ':line:' .. group),
    held, rule.held and 1 or 0, whole(rule.version), strays_of(held) }
end

local state = notice()
if state == 'format' then return { state, '', 0, {}, {} } end
local entries, groups, seen = {}, {}, {}
for _, item in ipairs(asked) do
  local e = known(item.run, item.group)
  if e and in_place(item.run, e) then entries[#entries + 1] = describe(item.run, e) end
  if not seen[item.group] then
    seen[item.group] = true
    groups[#groups + 1] = group_state(item.group)
  end
end
return { state, epoch.number, rebuilding(), entries, groups }
