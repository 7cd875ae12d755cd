-- Lanes: the same rules as `teimoso_delivery::lanes`, on a sorted set per lane (due time, key), a packed record
-- per lane, a list of lanes per application (its ring), and a list of applications (the turns).

local NOWHERE, RING, TIMER, SHARE = 0, 1, 2, 3
local BY_RETRY_AFTER, BY_BREAKER = 1, 2
local NEUTRAL, SUCCESS, FAILURE, PAUSE = 0, 1, 2, 3
local FAILURES_TO_OPEN, FAILURES_SPAN, FIRST_PAUSE, LONGEST_PAUSE = 10, 30000, 30000, 300000

-- version, place, why paused (0: not), answers, openings, allowance (0: the cap), in flight, failures, successes,
-- deliveries kept, not before, first failure, due time of the head plus 1 (0: none), then the application
local LANE = '>BBBBBI4I4I4I4I4I8I8I8'
local LANE_BYTES = 5 + 5 * 4 + 3 * 8

local lanes, lane_list = {}, {}
-- Whether processes that wait must look again; whether this script claims after what it puts into rings.
local ring_bell, will_claim = false, false
-- While claims are made, an application's lanes queue here behind those in Redis.
local taking, own_rings = false, {}

local function new_lane(id, application)
  local l = { id = id, application = application, place = NOWHERE, why = 0, answers = 0, openings = 0,
    allowance = 0, in_flight = 0, failures = 0, successes = 0, kept = 0, not_before = 0, first_failure = 0,
    head = nil, score = nil }
  lanes[id] = l
  lane_list[#lane_list + 1] = l
  return l
end

local function lane_of(id)
  id = tonumber(id)
  local l = lanes[id]
  if l then return l end
  local raw = call('HGET', LANES, id)
  if not raw then return nil end
  l = new_lane(id, string.sub(raw, LANE_BYTES + 1))
  local version, head
  version, l.place, l.why, l.answers, l.openings, l.allowance, l.in_flight, l.failures, l.successes, l.kept,
    l.not_before, l.first_failure, head = unpk(LANE, raw)
  if head > 0 then
    l.head = head - 1
    l.score = math.max(l.head, l.why > 0 and l.not_before or 0)
  end
  return l
end

local function queue_of(l) return P .. 'lane:' .. string.format('%d', l.id) end

-- ---- the queue of a lane

-- Reads the next heads, few at first: with many lanes a claim takes little of each. What was taken in this script is
-- still there and is passed over.
local function load(l)
  local skip, step = l.gone and #l.gone or 0, l.step or 2
  local raw = call('ZRANGE', queue_of(l), skip, skip + step - 1, 'WITHSCORES')
  l.near, l.at, l.more, l.step = raw, 1, #raw == 2 * step, math.min(step * 4, CAP + 1)
  l.head = raw[2] and tonumber(raw[2])
end

-- The due time of the head.
local function head(l)
  if l.stale then
    load(l)
    l.stale = false
  end
  return l.head
end

local function allowance(l)
  if l.allowance == 0 then return CAP end
  return math.min(l.allowance, CAP)
end

local function paused_until(l) return l.why > 0 and l.not_before or 0 end

local first_timer = nil
local function set_timer(l, at)
  if not first_timer then
    first_timer = tonumber(call('ZRANGE', TIMERS, 0, 0, 'WITHSCORES')[2] or math.huge)
  end
  if at < first_timer then
    first_timer, ring_bell = at, true
  end
  if l.timer ~= at then call('ZADD', TIMERS, at, l.id) end
  l.timer = at
end

local function ring_of(application) return P .. 'ring:' .. application end

local function put(l, place, at)
  if place == TIMER then
    l.place = TIMER
    return set_timer(l, at)
  end
  if l.place == place then return end
  if l.place == TIMER then
    call('ZREM', TIMERS, l.id)
    l.timer = nil
  end
  l.place = place
  if place == SHARE then
    call('RPUSH', SHARED, l.id)
  elseif place == RING and taking then
    table.insert(own_rings[l.application], l.id)
  elseif place == RING then
    if not will_claim then ring_bell = true end
    if call('RPUSH', ring_of(l.application), l.id) == 1 then call('RPUSH', TURNS, l.application) end
  end
end

-- Puts a lane where it has to wait. One that is in its ring stays there: its turn looks again.
local function place(l)
  if l.place == RING or l.place == SHARE then return end
  local due = head(l)
  if not due or l.in_flight >= allowance(l) then return put(l, NOWHERE) end
  local at = math.max(due, paused_until(l))
  if at > now then return put(l, TIMER, at) end
  put(l, RING)
end

local function push(l, due, key)
  call('ZADD', queue_of(l), due, key)
  if not l.stale and (not l.head or due < l.head) then l.head = due end
  l.near = nil
  place(l)
end

local function remove(l, key)
  local found = call('ZREM', queue_of(l), key)
  l.near, l.stale = nil, true
  place(l)
  return found
end

-- ---- health

local function open_breaker(l, at)
  local pause = math.min(FIRST_PAUSE * 2 ^ math.min(l.openings, 16), LONGEST_PAUSE)
  l.why, l.not_before, l.allowance = BY_BREAKER, at + pause, 1
  l.openings = math.min(l.openings + 1, 255)
  l.failures = 0
end

local function hear(l, news, pause_until, at)
  if news == NEUTRAL then return end
  if news == PAUSE then
    if l.why == 0 or l.not_before < pause_until then l.why, l.not_before = BY_RETRY_AFTER, pause_until end
    l.allowance, l.successes = 1, 0
    return
  end
  -- Stragglers that were in flight when the pause began say nothing about its end.
  if l.why > 0 and l.not_before > at then return end
  if news == SUCCESS then
    l.failures, l.why = 0, 0
    if l.allowance == 0 then return end
    l.successes = l.successes + 1
    if l.successes < l.allowance then return end
    l.successes = 0
    l.allowance = l.allowance * 2
    if l.allowance >= CAP then l.allowance, l.openings = 0, 0 end
    return
  end
  if l.failures == 0 then l.first_failure = at end
  l.failures, l.successes = l.failures + 1, 0
  local probing = l.openings > 0 and l.allowance > 0
  if probing or (l.failures >= FAILURES_TO_OPEN and at - l.first_failure >= FAILURES_SPAN) then
    open_breaker(l, at)
  end
end

local paused = {}

-- Frees a slot and hears how it went.
local function release(l, news, pause_until, at)
  l.in_flight = math.max(l.in_flight - 1, 0)
  local until_before, why_before = l.not_before, l.why
  hear(l, news, pause_until, at)
  if l.why > 0 and (l.not_before ~= until_before or l.why ~= why_before) then
    paused[#paused + 1] = { l.id, l.not_before, l.why }
  end
  place(l)
end

-- ---- the end of a script

local function print_lane(l)
  return pack(LANE, 1, l.place, l.why, l.answers, l.openings, l.allowance, l.in_flight, l.failures, l.successes,
    l.kept, l.not_before, l.first_failure, l.head and l.head + 1 or 0) .. l.application
end

local function is_idle(l)
  return not l.head and l.in_flight == 0 and l.kept == 0 and l.place == NOWHERE and l.why == 0
    and l.allowance == 0 and l.openings == 0 and l.failures == 0
end

local function forget_lane(l)
  local name = call('HGET', LANE_NAMES, l.id)
  if name then call('HDEL', LANE_IDS, name) end
  call('HDEL', LANE_NAMES, l.id)
  call('HDEL', LANES, l.id)
end

local function flush_lanes()
  local records = {}
  local crowded = nil
  for _, l in ipairs(lane_list) do
    if l.gone then
      each_chunk(l.gone, 1, function(...) call('ZREM', queue_of(l), ...) end)
    end
    local due = head(l)
    local score = due and math.max(due, paused_until(l))
    if score ~= l.score then
      if score then call('ZADD', HEADS, score, l.id) else call('ZREM', HEADS, l.id) end
    end
    if crowded == nil then crowded = call('HLEN', LANE_IDS) >= MAX_URL_LANES / 2 end
    if crowded and is_idle(l) then
      forget_lane(l)
    else
      records[#records + 1] = l.id
      records[#records + 1] = print_lane(l)
    end
  end
  each_chunk(records, 2, function(...) call('HSET', LANES, ...) end)
end
