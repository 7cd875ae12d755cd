-- The rest of a cycle: the claim of what was taken, the history's bounds, the answer.
--
-- Answers  the bell, whether there is more to do than one script may, when to wake (-1: nothing waits), renewals that
--          came too late by their place, lanes that were paused (name, until, why), per delivery its key,
--          its record (empty: as its event says) and its event's record, then the clocks' difference, how far a clock
--          went back, and whether the public keys have something to adopt

local CLAIMS, LEASES = P .. 'claims', P .. 'leases'
local claimed, answer = {}, {}

local NOT_TRIED = string.rep('\0', 20)

-- What was read and is no more, or not to be had: an operator's work.
local function leave(index)
  local l = taken_of[index]
  if not l then return end
  l.in_flight = max(l.in_flight - 1, 0)
  place(l)
end

-- Its record with the lease, and whether it is more than its event says; nil when it cannot be had.
local first_claims = 0
local function lease(key, event)
  local d, raw = deliveries[key], raws[key]
  if d then
    if d.state ~= PENDING and d.state ~= SCHEDULED then return nil end
    d.nonce = nonce
    go(d, IN_FLIGHT)
    return print_delivery(d)
  end
  local record
  if raw then
    local state = byte(raw, 2)
    if state ~= PENDING and state ~= SCHEDULED then return nil end
    count(STATE_NAMES[state], -1)
    count('in_flight', 1)
    record = '\2\1' .. sub(raw, 3, 51) .. nonce .. sub(raw, LAST_AT)
  else
    first_claims = first_claims + 1
    record = '\2\1\0' .. sub(event, 2, 17) .. NOT_TRIED .. pack('>I4', #event) .. sub(event, 18, 25) .. nonce
  end
  local at = #written
  written[at + 1] = key
  written[at + 2] = record
  return raw and record or ''
end

local function lease_taken()
  local events, records = fetch(EVENTS, taken), fetch(DELIVERIES, later_taken)
  for index, key in ipairs(later_taken) do
    if raws[key] == nil then raws[key] = records[index] end
  end
  for index = 1, #taken do
    local key, event = taken[index], events[index]
    local record = event and lease(key, event)
    if record then
      claimed[#claimed + 1] = key
      local at = #answer
      answer[at + 1] = key
      answer[at + 2] = record
      answer[at + 3] = event
    else
      leave(index)
    end
  end
  if first_claims > 0 then
    count('pending', -first_claims)
    count('in_flight', first_claims)
  end
  if #claimed == 0 then return end
  call('HSET', CLAIMS, nonce, table.concat(claimed), nonce .. '#', #claimed)
  call('ZADD', LEASES, lease_until, nonce)
end

-- The leases of a claim whose answer was lost, with their full time again.
local function repeat_claim(known)
  local keys, held_still = {}, {}
  for from = 1, #known, 15 do keys[#keys + 1] = sub(known, from, from + 14) end
  local events, records = fetch(EVENTS, keys), fetch(DELIVERIES, keys)
  for index, key in ipairs(keys) do
    if raws[key] == nil then raws[key] = records[index] end
    local d = events[index] and delivery(key)
    if d and d.state == IN_FLIGHT and d.nonce == nonce then
      claimed[#claimed + 1] = key
      held_still[#held_still + 1] = lease_until
      held_still[#held_still + 1] = d.flags < RENEWED and nonce or key
      local at = #answer
      answer[at + 1] = key
      answer[at + 2] = print_delivery(d)
      answer[at + 3] = events[index]
    end
  end
  write('ZADD', LEASES, held_still)
end

-- ---- history

local function sweep()
  local expunged, expunged_attempts = {}, {}

  local function expunge_row(key, tries, bytes)
    expunged[#expunged + 1] = key
    expunged[key] = true
    for number = 1, min(tries - 1, 1000) do expunged_attempts[#expunged_attempts + 1] = key .. ':' .. number end
    count('bytes', -bytes)
  end

  -- What was delivered, past the bounds of age and number. Rows of what was replayed since are only passed over.
  local function sweep_history(most)
    local rows = call('LRANGE', P .. 'history', '0', most - 1)
    local excess = #rows > 0 and call('LLEN', P .. 'history') - HISTORY_ROWS or 0
    local swept = 0
    for index, row in ipairs(rows) do
      local tries, finished, bytes = unpk('>I4I8I4', row, 16)
      if index > excess and finished + HISTORY_MS > now then break end
      swept = index
      if not is_ghost(row) then
        expunge_row(sub(row, 1, 15), tries, bytes)
        count('delivered', -1)
        count('expunged', 1)
      end
    end
    if swept > 0 then call('LTRIM', P .. 'history', swept, -1) end
  end

  local function sweep_cancelled(most)
    local order, gone = P .. 'order:cancelled', {}
    local oldest = call('ZRANGE', order, '0', most - 1)
    local excess = #oldest > 0 and call('ZCARD', order) - HISTORY_ROWS or 0
    for index, key in ipairs(oldest) do
      local d = delivery(key)
      if d and index > excess and d.finished + HISTORY_MS > now then break end
      gone[index] = key
      if d and d.state == CANCELLED then
        expunge_row(key, d.attempts, d.bytes)
        count('cancelled', -1)
        count('expunged', 1)
        d.gone = true
        local l = lane_of(d.lane)
        if l then l.kept = max(l.kept - 1, 0) end
      end
    end
    write('ZREM', order, gone)
  end

  -- Events that nobody was to receive.
  local function sweep_bare(most)
    local gone = call('ZRANGEBYSCORE', P .. 'order:bare', '-inf', now - HISTORY_MS, 'LIMIT', 0, most)
    for _, key in ipairs(gone) do expunge_row(key, 0, call('HSTRLEN', EVENTS, key)) end
    write('ZREM', P .. 'order:bare', gone)
  end

  local function sweep_jobs(most)
    local gone = call('ZRANGEBYSCORE', P .. 'jobs_ended', '-inf', now - HISTORY_MS, 'LIMIT', '0', most)
    write('HDEL', P .. 'jobs', gone)
    write('ZREM', P .. 'jobs_ended', gone)
  end

  -- The order of events names at its beginning what is gone, and the odd one that outlives those after it: that goes
  -- beside it, so that the list stays about as long as there are events.
  local function trim_order()
    local names = call('LRANGE', EVENT_ORDER, 0, #expunged + 20)
    local gone_before = call('LLEN', EVENT_ORDER) + call('ZCARD', EVENT_ORDER_OLD) - call('HLEN', EVENTS)
    local trimmed, old = 0, {}
    for index, key in ipairs(names) do
      if not expunged[key] and call('HEXISTS', EVENTS, key) == 1 then
        if gone_before < 1000 then break end
        old[#old + 1] = 0
        old[#old + 1] = key
      end
      trimmed = index
    end
    if trimmed > 0 then call('LTRIM', EVENT_ORDER, trimmed, -1) end
    write('ZADD', EVENT_ORDER_OLD, old)
  end

  sweep_history(400)
  sweep_cancelled(8)
  sweep_bare(8)
  sweep_jobs(8)
  if #expunged == 0 then return end
  write('HDEL', EVENTS, expunged)
  write('HDEL', DELIVERIES, expunged)
  write('HDEL', ATTEMPTS, expunged_attempts)
  write('ZREM', EVENT_ORDER_OLD, expunged)
  trim_order()
end

-- ---- the answer

local function head_score(order) return tonumber(call('ZRANGE', order, '0', '0', 'WITHSCORES')[2] or math.huge) end

local function paused_lanes()
  local found = {}
  for _, pause in ipairs(paused) do
    local name = call('HGET', LANE_NAMES, pause[1])
    if name then
      for _, value in ipairs({ name, pause[2] - shift, pause[3] }) do found[#found + 1] = value end
    end
  end
  return found
end

local known = will_claim and call('HGET', CLAIMS, nonce)
if known then
  repeat_claim(known)
elseif will_claim then
  take()
  lease_taken()
end
-- Every few milliseconds will do.
if will_claim and (not last_run or floor(now / 16) ~= floor(last_run / 16)) then sweep() end
local bell = finish()
local wake, adopt = -1, 0
if will_claim then
  local first, kept_until = head_score(WAITING), head_score(P .. 'taken_until')
  if call('LLEN', ANYBODY .. 'prontos') > 0 or first <= now or kept_until <= now then adopt = 1 end
  -- No lease ends before the grace does.
  wake = min(first, kept_until, head_score(TIMERS), max(head_score(LEASES), grace), head_score(P .. 'jobs_due'))
  -- A score of somebody else's may be anything: seconds, or a fraction.
  wake = wake < math.huge and max(floor(wake - shift), 0) or -1
end
return { bell, unfinished, wake, lost, paused_lanes(), answer, shift, rebased, adopt }
