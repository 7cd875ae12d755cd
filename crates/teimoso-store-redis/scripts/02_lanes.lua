-- Lanes: the same rules as `teimoso_delivery::lanes`. What is fresh waits in the lane's record while it is little, and
-- behind that in a list; what is due later, or again, in a sorted set. Beside them a list of lanes per application (its
-- ring), and a list of applications (the turns).

local LANES, LANE_IDS, LANE_NAMES = P .. 'lanes', P .. 'lane_ids', P .. 'lane_names'
local TIMERS, HEADS, TURNS, SHARED = P .. 'timers', P .. 'heads', P .. 'turns', P .. 'shared'
local NOWHERE, RING, TIMER, SHARE = 0, 1, 2, 3

-- version, place, answers, whether its health follows, in flight, deliveries kept that are not delivered, fresh ones in
-- the list, due time of the first that waits for later plus 1 (0: none), a time before which nothing of it is due plus 1
-- (0: it was never said), bytes of the fresh ones in front; then those, its health if it is not the best, and the
-- application
local LANE, LANE_BYTES = '>BBBBI2I4I4I8I8B', 4 + 2 + 2 * 4 + 2 * 8 + 1
-- A fresh one: its key, and when it came. So many bytes of them are in the lane's record.
local ENTRY_BYTES, FRONT_BYTES = 15 + 8, 5 * (15 + 8)
-- why paused (0: not), openings, allowance (0: the cap), failures, successes, not before, first failure
local HEALTH, HEALTH_BYTES = '>BBI4I4I4I8I8', 2 + 3 * 4 + 2 * 8

local lanes, lane_list = {}, {}
-- Whether processes that wait must look again; whether this script claims after what it puts into rings.
local ring_bell, will_claim = false, false
-- Lanes that go to the end of their application's ring, by application.
local ring_ends, heads_said, paused = {}, {}, {}

local function new_lane(id, application)
  local l = { id = id, application = application, place = NOWHERE, answers = 0, in_flight = 0, kept = 0, fresh = 0,
    front = '' }
  lanes[id] = l
  lane_list[#lane_list + 1] = l
  return l
end

local function parse_lane(id, raw)
  local _, place, answers, ill, in_flight, kept, fresh, later, said, front = unpk(LANE, raw)
  local l = { id = id, place = place, answers = answers, in_flight = in_flight, kept = kept, fresh = fresh,
    later = later > 0 and later - 1 or nil, said = said > 0 and said - 1 or nil,
    front = sub(raw, LANE_BYTES + 1, LANE_BYTES + front) }
  local at = LANE_BYTES + front + 1
  if ill == 1 then
    local h = {}
    h.why, h.openings, h.allowance, h.failures, h.successes, h.not_before, h.first_failure = unpk(HEALTH, raw, at)
    l.health, at = h, at + HEALTH_BYTES
  end
  l.application, l.raw = sub(raw, at), raw
  lanes[id] = l
  lane_list[#lane_list + 1] = l
  return l
end

-- Reads ahead what `lane_of` will be asked for.
local function load_lanes(ids)
  local wanted, numbers = {}, {}
  for index = 1, #ids do
    local id = tonumber(ids[index])
    if not lanes[id] then
      numbers[#numbers + 1] = id
      wanted[#wanted + 1] = ids[index]
    end
  end
  local found = fetch(LANES, wanted)
  for index = 1, #numbers do
    if found[index] and not lanes[numbers[index]] then parse_lane(numbers[index], found[index]) end
  end
end

local function lane_of(id)
  local l = lanes[id]
  if l then return l end
  local raw = call('HGET', LANES, id)
  return raw and parse_lane(id, raw) or nil
end

-- ---- the two queues of a lane

local function fresh_of(l) return P .. 'fresh:' .. l.id end
local function later_of(l) return P .. 'lane:' .. l.id end

-- One that is due since it came.
local function enqueue(l, entry)
  if l.fresh == 0 and #l.front < FRONT_BYTES then
    l.front = l.front .. entry
    return
  end
  local came = l.came
  if not came then
    came = {}
    l.came = came
  end
  came[#came + 1] = entry
  l.fresh = l.fresh + 1
end

-- Nothing of the lane was due before this: the statistics' first look at who is overdue longest.
local function say_due(l, due)
  if not l.said or due < l.said then
    l.said = due
    heads_said[#heads_said + 1] = due
    heads_said[#heads_said + 1] = l.id
  end
end

-- The due time of the first that waits for later, or nil.
local function later_head(l)
  if l.stale then
    if l.added then
      write('ZADD', later_of(l), l.added)
      l.added = nil
    end
    local gone = l.gone and #l.gone or 0
    l.later = tonumber(call('ZRANGE', later_of(l), gone, gone, 'WITHSCORES')[2] or '')
    l.stale = false
  end
  return l.later
end

local function allowance(l)
  local h = l.health
  return h and h.allowance > 0 and min(h.allowance, CAP) or CAP
end

local function paused_until(l)
  local h = l.health
  return h and h.why > 0 and h.not_before or 0
end

local first_timer = nil
local function put(l, place, at)
  local before = l.place
  l.place = place
  if place == TIMER then
    if not first_timer then
      first_timer = tonumber(call('ZRANGE', TIMERS, 0, 0, 'WITHSCORES')[2] or math.huge)
    end
    if at < first_timer then first_timer, ring_bell = at, true end
    if l.timer ~= at then call('ZADD', TIMERS, at, l.id) end
    l.timer = at
    return
  end
  if before == place then return end
  if before == TIMER then
    call('ZREM', TIMERS, l.id)
    l.timer = nil
  end
  if place == SHARE then
    call('RPUSH', SHARED, l.id)
  elseif place == RING then
    local ring = ring_ends[l.application]
    if not ring then
      ring = {}
      ring_ends[l.application] = ring
    end
    ring[#ring + 1] = l.id
    if not will_claim then ring_bell = true end
  end
end

-- Puts a lane where it has to wait. One that is in its ring stays there: its turn looks again. What is fresh was due
-- when it came.
local function place(l)
  if l.place == RING or l.place == SHARE then return end
  local at = nil
  if l.in_flight < allowance(l) then
    if l.front ~= '' or l.fresh > 0 then at = 0 else at = later_head(l) end
  end
  if not at then
    if l.place ~= NOWHERE then put(l, NOWHERE) end
    return
  end
  if l.health then at = max(at, paused_until(l)) end
  if at > now then put(l, TIMER, at) else put(l, RING) end
end

-- A delivery that is due later, or was tried before.
local function push(l, due, key)
  if not l.added then l.added = {} end
  local added = l.added
  added[#added + 1] = due
  added[#added + 1] = key
  if not l.stale and (not l.later or due < l.later) then l.later = due end
  say_due(l, due)
  place(l)
end

local function remove(l, key)
  if l.added then
    write('ZADD', later_of(l), l.added)
    l.added = nil
  end
  call('ZREM', later_of(l), key)
  l.stale = true
  place(l)
end

-- ---- health

local NEUTRAL, SUCCESS = 0, 1

-- What an end says of the destination, as `teimoso_delivery::lanes::health` does.
local function hear(l, news, pause_until, at)
  local PAUSE, BY_RETRY_AFTER, BY_BREAKER = 3, 1, 2
  local FAILURES_TO_OPEN, FAILURES_SPAN, FIRST_PAUSE, LONGEST_PAUSE = 10, 30000, 30000, 300000
  local h = l.health
  if not h then
    h = { why = 0, openings = 0, allowance = 0, failures = 0, successes = 0, not_before = 0, first_failure = 0 }
    l.health = h
  end
  if news == PAUSE then
    if h.why == 0 or h.not_before < pause_until then h.why, h.not_before = BY_RETRY_AFTER, pause_until end
    h.allowance, h.successes = 1, 0
    return
  end
  -- Stragglers that were in flight when the pause began say nothing about its end.
  if h.why > 0 and h.not_before > at then return end
  if news == SUCCESS then
    h.failures, h.why = 0, 0
    if h.allowance == 0 then return end
    h.successes = h.successes + 1
    if h.successes < h.allowance then return end
    h.successes = 0
    h.allowance = h.allowance * 2
    if h.allowance >= CAP then h.allowance, h.openings = 0, 0 end
    return
  end
  if h.failures == 0 then h.first_failure = at end
  h.failures, h.successes = h.failures + 1, 0
  local probing = h.openings > 0 and h.allowance > 0
  if probing or (h.failures >= FAILURES_TO_OPEN and at - h.first_failure >= FAILURES_SPAN) then
    local pause = min(FIRST_PAUSE * 2 ^ min(h.openings, 16), LONGEST_PAUSE)
    h.why, h.not_before, h.allowance = BY_BREAKER, at + pause, 1
    h.openings = min(h.openings + 1, 255)
    h.failures = 0
  end
end

-- Frees a slot and hears how it went.
local function release(l, news, pause_until, at)
  if l.in_flight > 0 then l.in_flight = l.in_flight - 1 end
  -- A success says nothing new of a lane that is well.
  if news ~= NEUTRAL and (l.health or news ~= SUCCESS) then
    local h = l.health
    local until_before, why_before = h and h.not_before or 0, h and h.why or 0
    hear(l, news, pause_until, at)
    h = l.health
    if h.why > 0 and (h.not_before ~= until_before or h.why ~= why_before) then
      paused[#paused + 1] = { l.id, h.not_before, h.why }
    end
  end
  if l.place == NOWHERE or l.place == TIMER then place(l) end
end

-- ---- the end of a script

-- Lanes go to the end of their rings; an application whose ring was empty gets turns again.
local function flush_rings()
  for application, ids in pairs(ring_ends) do
    local length = 0
    for from = 1, #ids, CHUNK do
      length = call('RPUSH', P .. 'ring:' .. application, unpack(ids, from, min(from + CHUNK - 1, #ids)))
    end
    if length == #ids then call('RPUSH', TURNS, application) end
  end
  ring_ends = {}
end

local function flush_lanes()
  flush_rings()
  local crowded = #lane_list > 0 and call('HLEN', LANE_IDS) >= MAX_URL_LANES / 2
  local records, forgotten = {}, {}
  for index = 1, #lane_list do
    local l = lane_list[index]
    if l.gone then write('ZREM', later_of(l), l.gone) end
    if l.added then write('ZADD', later_of(l), l.added) end
    if l.came then write('RPUSH', fresh_of(l), l.came) end
    l.gone, l.added = nil, nil
    local later = later_head(l)
    local h = l.health
    if h and h.why == 0 and h.openings == 0 and h.allowance == 0 and h.failures == 0 then h = nil end
    if crowded and not h and l.place == NOWHERE and l.in_flight == 0 and l.kept == 0 and l.front == ''
      and l.fresh == 0 and not later then
      forgotten[#forgotten + 1] = l.id
    else
      local record = pack(LANE, 2, l.place, l.answers, h and 1 or 0, l.in_flight, l.kept, l.fresh,
        later and later + 1 or 0, l.said and l.said + 1 or 0, #l.front) .. l.front
      if h then
        record = record .. pack(HEALTH, h.why, h.openings, h.allowance, h.failures, h.successes, h.not_before,
          h.first_failure)
      end
      record = record .. l.application
      if record ~= l.raw then
        records[#records + 1] = l.id
        records[#records + 1] = record
      end
    end
  end
  if #forgotten > 0 then
    for _, name in ipairs(fetch(LANE_NAMES, forgotten)) do call('HDEL', LANE_IDS, name) end
    write('HDEL', LANE_NAMES, forgotten)
    write('HDEL', LANES, forgotten)
    write('ZREM', HEADS, forgotten)
  end
  write('ZADD', HEADS, heads_said)
  write('HSET', LANES, records)
end
