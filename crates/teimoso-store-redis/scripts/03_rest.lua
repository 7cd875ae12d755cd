-- Deliveries, where they go, and the end of every script that changes any.
--
-- A delivery that waits for its first claim has no record of its own: its event's says all there is. The record it gets
-- with its first claim ends with its last attempt; earlier ones are beside it.

-- version, state, reason, mode, why, recoveries, flags, budget_from, due, first attempt, attempts, finished, bytes of
-- its event's record, lane, nonce; then the last attempt's record (may be empty)
local DELIVERY, LAST_AT = '>BBBBBBBI4I8I8I4I8I4c8c16', 68
-- Of an event's record, what its delivery's begins with: version, mode, why, recoveries, flags, budget_from, due, lane.
local EVENT, EVENT_BYTES = '>BBBBBI4I8c8', 25
local WHY_REPLAY, REASON_AMBIGUOUS, REASON_POISON, MAX_RECOVERIES = 7, 4, 11, 3
local NO_NONCE = string.rep('\0', 16)

-- Records that were read ahead or written, and those that were taken apart, by key.
local raws, deliveries, touched = {}, {}, {}
-- What the end of the script writes: records, attempts; leases that are their delivery's own, and how many of each
-- claim's ended; entries of the history; of the order of those that are tried again, who leaves.
local written, attempts, leases_gone, leases_ended, history, tried_gone = {}, {}, {}, {}, {}, {}
local ghosts = {}

local function parse_delivery(key, raw)
  local d = { key = key }
  local version
  version, d.state, d.reason, d.mode, d.why, d.recoveries, d.flags, d.budget_from, d.due, d.first, d.attempts,
    d.finished, d.bytes, d.lane, d.nonce = unpk(DELIVERY, raw)
  d.last, d.was, d.tried = sub(raw, LAST_AT), d.state, d.attempts > 0
  deliveries[key] = d
  return d
end

local function delivery(key)
  local d = deliveries[key]
  if d then return d end
  local raw = raws[key]
  if raw == nil then raw = call('HGET', DELIVERIES, key) end
  return raw and parse_delivery(key, raw) or nil
end

local function print_delivery(d)
  return pack(DELIVERY, 2, d.state, d.reason, d.mode, d.why, d.recoveries, d.flags, d.budget_from, d.due, d.first,
    d.attempts, d.finished, d.bytes, d.lane, d.nonce) .. d.last
end

-- One that waits for its first claim, from its event's record.
local function fresh_delivery(key)
  local raw = call('HGET', EVENTS, key)
  if not raw then return nil end
  local _, mode, why, recoveries, flags, budget_from, due, lane = unpk(EVENT, raw)
  if lane == NO_LANE then return nil end
  local d = { key = key, state = PENDING, reason = 0, mode = mode, why = why, recoveries = recoveries, flags = flags,
    budget_from = budget_from, due = due, first = 0, attempts = 0, finished = 0, bytes = #raw, lane = lane,
    nonce = NO_NONCE, last = '', was = PENDING, tried = false, fresh = true }
  deliveries[key] = d
  return d
end

local function touch(d)
  if not d.touched then
    d.touched = true
    touched[#touched + 1] = d
  end
end

local function go(d, state)
  count(STATE_NAMES[d.state], -1)
  count(STATE_NAMES[state], 1)
  d.state = state
  touch(d)
end

-- Puts a delivery back into its lane.
local function make_due(d, due, why)
  d.due, d.why, d.reason, d.finished = due, why, 0, 0
  go(d, d.attempts == 0 and PENDING or SCHEDULED)
  local l = lane_of(d.lane)
  if l then push(l, due, d.key) end
end

-- A row of the history, as a success is listed in it.
local function history_row(d) return d.key .. pack('>I4I8I4', d.attempts, d.finished, d.bytes) end

-- A delivery after a replay: numbers continue, the budget is fresh.
local function renew(d)
  local l = lane_of(d.lane)
  if d.state == SCHEDULED and l then remove(l, d.key) end
  if d.state == DELIVERED then
    ghosts[#ghosts + 1] = history_row(d)
    ghosts[#ghosts + 1] = 1
    if l then l.kept = l.kept + 1 end
  end
  d.budget_from, d.first, d.recoveries = d.attempts, 0, 0
  make_due(d, now, WHY_REPLAY)
end

-- Takes the lease away; the delivery has to come to rest next.
local function end_lease(d)
  leases_ended[d.nonce] = (leases_ended[d.nonce] or 0) + 1
  if d.flags >= RENEWED then
    d.flags = d.flags - RENEWED
    leases_gone[#leases_gone + 1] = d.key
  end
  d.nonce = NO_NONCE
  touch(d)
end

local NEXT_DELIVERED, NEXT_SCHEDULED, NEXT_DEAD, NEXT_RELEASED = 0, 1, 2, 3

-- Where a delivery goes when nobody works on it any more. A cancellation wished meanwhile is honoured, but an end
-- stands.
local function rest(d, next, reason, due, why, at)
  local wished = d.flags % 2 == WISHED_CANCEL
  if wished then d.flags = d.flags - WISHED_CANCEL end
  if next == NEXT_SCHEDULED and not wished then return make_due(d, due, why) end
  if next == NEXT_RELEASED and not wished then return make_due(d, d.due, d.why) end
  d.finished = at
  if next == NEXT_DELIVERED then
    history[#history + 1] = history_row(d)
    local l = lane_of(d.lane)
    if l then l.kept = max(l.kept - 1, 0) end
    return go(d, DELIVERED)
  end
  if next == NEXT_DEAD then
    d.reason = reason
    return go(d, DEAD)
  end
  go(d, CANCELLED)
end

-- Removes a delivery and its event. The order of events may go on naming it.
local function remove_records(d)
  local gone = {}
  for number = 1, min(d.attempts - 1, 1000) do gone[#gone + 1] = d.key .. ':' .. number end
  write('HDEL', ATTEMPTS, gone)
  call('HDEL', DELIVERIES, d.key)
  call('HDEL', EVENTS, d.key)
  call('ZREM', EVENT_ORDER_OLD, d.key)
  d.gone = true
  touch(d)
  count(STATE_NAMES[d.state], -1)
  count('bytes', -d.bytes)
  local l = d.state ~= DELIVERED and lane_of(d.lane)
  if l then l.kept = max(l.kept - 1, 0) end
end

-- ---- the end of a script

-- The order a delivery is listed in: one for those that are tried again, one for each of two ends. The others are found
-- by the order of their events.
local function order_of(state, tried)
  if state == DEAD then return P .. 'order:dead' end
  if state == CANCELLED then return P .. 'order:cancelled' end
  if tried and state ~= DELIVERED then return P .. 'order:tried' end
end

local function flush_deliveries()
  local leave, enter = {}, {}
  for index = 1, #touched do
    local d = touched[index]
    local before, after = d.was and order_of(d.was, d.tried), not d.gone and order_of(d.state, d.attempts > 0) or nil
    if before ~= after then
      if before then
        leave[before] = leave[before] or {}
        table.insert(leave[before], d.key)
      end
      if after then
        enter[after] = enter[after] or {}
        table.insert(enter[after], 0)
        table.insert(enter[after], d.key)
      end
    end
    if not d.gone then
      written[#written + 1] = d.key
      written[#written + 1] = print_delivery(d)
    end
  end
  for order, keys in pairs(leave) do write('ZREM', order, keys) end
  write('ZREM', P .. 'order:tried', tried_gone)
  for order, keys in pairs(enter) do write('ZADD', order, keys) end
  write('HSET', DELIVERIES, written)
  write('HSET', ATTEMPTS, attempts)
  write('RPUSH', P .. 'history', history)
  write('HSET', GHOSTS, ghosts)
end

-- A claim is over when none of its leases is left.
local function flush_leases()
  local over, fields = {}, {}
  for nonce, ended in pairs(leases_ended) do
    if call('HINCRBY', P .. 'claims', nonce .. '#', -ended) <= 0 then
      leases_gone[#leases_gone + 1] = nonce
      over[#over + 1] = nonce
      over[#over + 1] = nonce .. '#'
    end
  end
  write('HDEL', P .. 'claims', over)
  write('ZREM', P .. 'leases', leases_gone)
end

local function finish()
  flush_leases()
  flush_lanes()
  flush_deliveries()
  for name, by in pairs(counted) do
    if by ~= 0 then call('HINCRBY', P .. 'counts', name, by) end
  end
  local marks = {}
  if key_ms then
    marks[1] = 'last_key'
    marks[2] = string.format('%012x%03x', key_ms, key_counter)
  end
  if not clock_is_ours then
    marks[#marks + 1] = 'now'
    marks[#marks + 1] = now_text
  end
  if was_away then
    marks[#marks + 1] = 'grace'
    marks[#marks + 1] = string.format('%d', grace)
  end
  write('HSET', META, marks)
  if ring_bell then return call('INCR', P .. 'bell') end
  return tonumber(call('GET', P .. 'bell') or '0')
end
