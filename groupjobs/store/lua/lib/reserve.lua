-- Takes up to `want` heads of ready groups. A hinted run is a batch of its own; several heads of one
-- group only where its limit is 1, in equal shares.

-- Tokens that a group may take now; nil when it has no rate.
local function tokens(group, rule)
  if rule.count == 0 then return nil end
  if token_at(group, rule) > now then return 0 end
  return math.max(1, math.floor((now + rule.period - full_at(group, rule)) * rule.count / rule.period))
end

local function room_in(group, rule, share)
  if rule.held then return 0 end
  local leases = call('SCARD', base .. ':held:' .. group)
  if leases >= rule.limit then return 0 end
  local room = rule.limit == 1 and share or 1
  return math.min(room, tokens(group, rule) or room)
end

-- Adds heads of one group to the batch. Answers true when the batch is a hinted run alone.
local function draw(batch, group, room)
  local heads = call('ZRANGE', base .. ':line:' .. group, 0, room - 1, 'WITHSCORES')
  for index = 1, #heads, 2 do
    local found = call('HMGET', base .. ':run:' .. heads[index], 'l', 'a', 't', 'x', 'i', 'd')
    local alone = tonumber(found[2] or 0)
    if tonumber(found[3] or 0) > now then return false end
    if alone > 0 and #batch > 0 then return false end
    batch[#batch + 1] = {
      run = heads[index], order = heads[index + 1], group = group, life = found[1] or '1', alone = alone,
      healed = found[4] or '0', interrupted = tonumber(found[5] or 0), timed = found[3],
      overdue = overdue(found[4], found[6]),
    }
    if alone > 0 then return true end
  end
  return false
end

local function choose(want)
  local groups = call('ZRANGE', base .. ':ready', 0, want - 1)
  local share, batch, chosen = math.ceil(want / math.max(1, #groups)), {}, {}
  for _, group in ipairs(groups) do
    if #batch >= want then break end
    local rule, before = rules(group), #batch
    local room = math.min(room_in(group, rule, share), want - before)
    local alone = room > 0 and draw(batch, group, room)
    if #batch > before then
      chosen[#chosen + 1] = { group = group, rule = rule, first = before + 1, last = #batch }
    else
      touch(group)
    end
    if alone then break end
  end
  return batch, chosen
end

local function hand_out(batch, nonce, worker)
  local last = call('INCRBY', base .. ':fence', #batch)
  local runs = {}
  for index, item in ipairs(batch) do
    local key = base .. ':run:' .. item.run
    item.fence = whole(last - #batch + index)
    if #batch == 1 then item.alone = math.max(item.alone, 1) end
    if item.timed then call('HDEL', key, 't') end
    call('HSET', key, 'g', item.group, 'o', item.order, 'l', item.life, 'f', item.fence, 'a', item.alone,
      'c', nonce, 'w', worker)
    runs[index] = item.run
  end
  each_thousand(runs, function(...) call('SADD', base .. ':leases:' .. nonce, ...) end)
  return runs
end

local function reserve(nonce, worker, want)
  local batch, chosen = choose(want)
  if #batch > 0 then
    local runs, groups = hand_out(batch, nonce, worker), {}
    for index, part in ipairs(chosen) do
      call('ZREM', base .. ':line:' .. part.group, unpack(runs, part.first, part.last))
      call('SADD', base .. ':held:' .. part.group, unpack(runs, part.first, part.last))
      take_tokens(part.group, part.rule, part.last - part.first + 1)
      groups[index] = part.group
      if part.rule.limit > 1 then touch(part.group) end
    end
    call('ZREM', base .. ':ready', unpack(groups))
    count('reserved', #batch)
  end
  refresh()
  return batch
end
