-- Where deliveries go, and the end of every script that changes any.

-- Puts a delivery back into its lane.
local function make_due(d, due, why)
  d.due, d.why, d.reason, d.finished = due, why, 0, 0
  go(d, d.attempts == 0 and PENDING or SCHEDULED)
  local l = lane_of(d.lane)
  if l then push(l, due, d.key) end
end

-- A delivery after a replay: numbers continue, the budget is fresh.
local function renew(d)
  if d.state == SCHEDULED then
    local l = lane_of(d.lane)
    if l then remove(l, d.key) end
  end
  d.budget_from, d.first, d.recoveries = d.attempts, 0, 0
  make_due(d, now, WHY_REPLAY)
end

local leases_gone = {}

-- Takes the lease away; the delivery has to come to rest next.
local function end_lease(d)
  d.nonce = NO_NONCE
  leases_gone[#leases_gone + 1] = d.key
  touch(d)
end

local NEXT_DELIVERED, NEXT_SCHEDULED, NEXT_DEAD, NEXT_RELEASED = 0, 1, 2, 3

-- Where a delivery goes when nobody works on it any more. A cancellation wished meanwhile is honoured, but an end
-- stands.
local function rest(d, next, reason, due, why, at)
  local wished = has(d.flags, WISHED_CANCEL)
  if wished then d.flags = d.flags - WISHED_CANCEL end
  if next == NEXT_DELIVERED then
    go(d, DELIVERED)
  elseif next == NEXT_DEAD then
    d.reason = reason
    go(d, DEAD)
  elseif wished then
    go(d, CANCELLED)
  elseif next == NEXT_SCHEDULED then
    return make_due(d, due, why)
  else
    return make_due(d, d.due, d.why)
  end
  d.finished = at
end

-- ---- expunging history

local attempts_gone, deliveries_gone = {}, {}

local function expunge_event(key)
  count('bytes', -call('HSTRLEN', EVENTS, key))
  call('HDEL', EVENTS, key)
  call('ZREM', EVENT_ORDER, key)
end

-- An event has one delivery, so it goes with it.
local function remove_records(d)
  local key = d.key
  for number = 1, math.min(d.attempts, 1000) do attempts_gone[#attempts_gone + 1] = key .. ':' .. number end
  deliveries_gone[#deliveries_gone + 1] = key
  d.gone = true
  count(STATE_NAMES[d.state], -1)
  local l = lane_of(d.lane)
  if l then l.kept = math.max(l.kept - 1, 0) end
  expunge_event(d.event)
end

local function expunge(key)
  local d = delivery(key)
  if not d then return end
  remove_records(d)
  count('expunged', 1)
end

-- Back to the public keys, where it counts as one of theirs.
local function give_up_to_public(d)
  remove_records(d)
  count('accepted', -1)
  call('ZREM', order_of(d.was), d.key)
end

-- Removes a few of what ended longest ago, past the bounds of age and number.
local function sweep(state, most)
  local order = order_of(state)
  local excess = call('ZCARD', order) - HISTORY_ROWS
  local oldest = call('ZRANGE', order, 0, most - 1)
  local gone = {}
  for index, key in ipairs(oldest) do
    local d = delivery(key)
    if not d or index <= excess or d.finished + HISTORY_MS <= now then
      expunge(key)
      gone[#gone + 1] = key
    else
      break
    end
  end
  if #gone > 0 then call('ZREM', order, unpack(gone)) end
end

-- The same for events that nobody was to receive.
local function sweep_bare(most)
  local gone = call('ZRANGEBYSCORE', BARE, '-inf', now - HISTORY_MS, 'LIMIT', 0, most)
  for _, key in ipairs(gone) do expunge_event(key) end
  if #gone > 0 then call('ZREM', BARE, unpack(gone)) end
end

-- ---- the end of a script

local function flush_deliveries()
  local leave, enter, records = {}, {}, {}
  for _, d in ipairs(touched) do
    if not d.gone then
      records[#records + 1] = d.key
      records[#records + 1] = print_delivery(d)
      local before, after = d.was and order_of(d.was), order_of(d.state)
      if before ~= after then
        if before then
          leave[before] = leave[before] or {}
          table.insert(leave[before], d.key)
        end
        enter[after] = enter[after] or {}
        table.insert(enter[after], 0)
        table.insert(enter[after], d.key)
      end
    end
  end
  for order, keys in pairs(leave) do each_chunk(keys, 1, function(...) call('ZREM', order, ...) end) end
  for order, keys in pairs(enter) do each_chunk(keys, 2, function(...) call('ZADD', order, ...) end) end
  each_chunk(records, 2, function(...) call('HSET', DELIVERIES, ...) end)
  each_chunk(deliveries_gone, 1, function(...) call('HDEL', DELIVERIES, ...) end)
  each_chunk(attempts_gone, 1, function(...) call('HDEL', ATTEMPTS, ...) end)
end

local function finish()
  flush_lanes()
  flush_deliveries()
  for name, by in pairs(counted) do
    if by ~= 0 then call('HINCRBY', COUNTS, name, by) end
  end
  if key_ms then call('HSET', META, 'last_key', string.format('%012x%03x', key_ms, key_counter)) end
  if not clock_is_ours then call('HSET', META, 'now', string.format('%d', now)) end
  if ring_bell then return call('INCR', BELL) end
  return tonumber(call('GET', BELL) or '0')
end
