-- Moves what time has released: due runs of `scheduled` into their lines, due groups of `later` to `ready`.
local PROMOTE = 128

local function promote()
  local due = call('ZRANGEBYSCORE', base .. ':scheduled', '-inf', now, 'LIMIT', 0, PROMOTE)
  for _, run in ipairs(due) do
    local e = entry(run)
    call('ZREM', base .. ':scheduled', run)
    if e and e.s and not e.c then put(run, e) end
  end
  for _, group in ipairs(call('ZRANGEBYSCORE', base .. ':later', '-inf', now, 'LIMIT', 0, PROMOTE)) do
    touch(group)
  end
  refresh()
end
