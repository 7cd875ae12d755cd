-- An examination's judgement of a few things in one step, and their healing in the same step: what is judged here is
-- judged as it stands now, whatever a scan saw. Without healing it writes nothing.
--
-- ARGV[4..6]  what is judged, whether to heal (1 or 0), a lease in ms
-- ARGV[7..]   deliveries, listed: keys · order: which listing, then keys · leases: members · queue: the lane, then keys · lanes: numbers · lane: one number ·
--             taken: tokens · names: names · jobs: keys · claims: nonces ·
--             open: a delivery's key, its lane's name · slots: a lane, its count, the true one ·
--             counters: names and values as they were read, each with what is to be added
-- Answers     per thing that is wrong: which, the tag of the finding, whether it was healed (1 or 0);
--             lanes: per lane its number, place, attempts in flight, whether it must be waiting (2: and counts other fresh
--             ones than there are), its application, the fresh entries in its record

local ALIVE_NOT_QUEUED, QUEUED_WITHOUT_DELIVERY, IN_FLIGHT_WITHOUT_LEASE, LEASE_WITHOUT_DELIVERY = 3, 4, 5, 6
local DELIVERY_WITHOUT_EVENT, NAME_WITHOUT_EVENT, LANE_MISSING = 7, 9, 11
local LANE_NOT_WAITING, LANE_SLOTS_OFF, TAKEN_WITHOUT_DEADLINE, DEADLINE_WITHOUT_ENTRY = 12, 13, 14, 15
local REPLAY_NOT_DUE, STALE_PROCESS_ENTRY, LISTING_OFF, COUNTERS_OFF = 21, 22, 23, 1
local REASON_MALFORMED = 9
local LEASES, CLAIMS, COUNTS, JOBS, JOBS_DUE = P .. 'leases', P .. 'claims', P .. 'counts', P .. 'jobs', P .. 'jobs_due'
local TAKEN, TAKEN_UNTIL = P .. 'taken', P .. 'taken_until'

local what, healing, lease_ms, first = ARGV[4], ARGV[5] == '1', tonumber(ARGV[6]), 7
local answer = {}

local function found(which, tag, healed)
  for _, value in ipairs({ which, tag, healed and healing and 1 or 0 }) do answer[#answer + 1] = value end
end

if healing then call('HDEL', META, '-') end

local judge = {}

local function without_event(d)
  if d.state == DEAD then return end
  local can = d.state ~= IN_FLIGHT
  found(d.key, DELIVERY_WITHOUT_EVENT, can)
  if not healing or not can then return end
  if d.state > SCHEDULED then
    remove_records(d)
    count('expunged', 1)
    if d.state == DELIVERED then
      ghosts[#ghosts + 1] = history_row(d)
      ghosts[#ghosts + 1] = 1
    end
    return
  end
  local l = lane_of(d.lane)
  if l then remove(l, d.key) end
  rest(d, NEXT_DEAD, REASON_MALFORMED, 0, 0, now)
end

local function in_front(l, key)
  for from = 1, #l.front, ENTRY_BYTES do
    if sub(l.front, from, from + 14) == key then return true end
  end
end

local function is_queued(l, d)
  if call('ZSCORE', later_of(l), d.key) then return true end
  return d.fresh and (in_front(l, d.key) or call('LPOS', fresh_of(l), d.key .. pack('>I8', d.due)))
end

-- Of one that was never claimed nothing but its event is kept; one whose record was lost looks the same.
local function not_queued(l, d)
  found(d.key, ALIVE_NOT_QUEUED, true)
  if not healing then return end
  if d.fresh and d.mode == AT_MOST_ONCE then return rest(d, NEXT_DEAD, REASON_AMBIGUOUS, 0, 0, now) end
  l.stale = true
  push(l, d.due, d.key)
  ring_bell = true
end

-- Whether a delivery with a record is in the listing of its kind.
local function look_up_listing(d)
  local order = order_of(d.state, d.attempts > 0)
  if not order or call('ZSCORE', order, d.key) then return end
  found(d.key, LISTING_OFF, true)
  if healing then call('ZADD', order, '0', d.key) end
end

-- One that a listing names.
function judge.order(key)
  local order, d = P .. 'order:' .. ARGV[7], delivery(key)
  if not call('ZSCORE', order, key) or (d and order_of(d.state, d.attempts > 0) == order) then return end
  found(key, LISTING_OFF, true)
  if healing then call('ZREM', order, key) end
end

-- An event that was not seen in the order of events. The list is in order: it is looked up by halves.
function judge.listed(key)
  if call('HEXISTS', EVENTS, key) == 0 or call('ZSCORE', EVENT_ORDER_OLD, key) then return end
  local low, high = 0, call('LLEN', EVENT_ORDER)
  while low < high do
    local middle = floor((low + high) / 2)
    if call('LINDEX', EVENT_ORDER, middle) < key then low = middle + 1 else high = middle end
  end
  if call('LINDEX', EVENT_ORDER, low) == key then return end
  found(key, LISTING_OFF, true)
  if healing then call('ZADD', EVENT_ORDER_OLD, '0', key) end
end

function judge.deliveries(key)
  local d = delivery(key)
  if d and call('HEXISTS', EVENTS, key) == 0 then return without_event(d) end
  if d then look_up_listing(d) end
  d = d or fresh_delivery(key)
  if not d or d.state > SCHEDULED then return end
  local l = lane_of(d.lane)
  if not l or call('HEXISTS', LANE_NAMES, d.lane) == 0 then return found(key, LANE_MISSING, false) end
  if d.state ~= IN_FLIGHT then
    if not is_queued(l, d) then not_queued(l, d) end
    return
  end
  if call('ZSCORE', LEASES, d.flags >= RENEWED and key or d.nonce) then return end
  found(key, IN_FLIGHT_WITHOUT_LEASE, true)
  if not healing then return end
  -- Whoever holds it still says so in time; nobody else does.
  call('ZADD', LEASES, now + lease_ms, key)
  if d.flags < RENEWED then
    d.flags = d.flags + RENEWED
    touch(d)
  end
  ring_bell = true
end

function judge.leases(member)
  if not call('ZSCORE', LEASES, member) then return end
  if #member == 16 then
    if call('HEXISTS', CLAIMS, member) == 1 then return end
  else
    local d = delivery(member)
    if d and d.state == IN_FLIGHT then return end
  end
  found(member, LEASE_WITHOUT_DELIVERY, true)
  if healing then call('ZREM', LEASES, member) end
end

function judge.queue(key)
  local lane = ARGV[7]
  local l = lane_of(lane)
  local d = delivery(key) or fresh_delivery(key)
  local belongs = d and (d.state == PENDING or d.state == SCHEDULED) and d.lane == lane
  if not l or belongs or not call('ZSCORE', later_of(l), key) then return end
  found(key, QUEUED_WITHOUT_DELIVERY, true)
  if healing then remove(l, key) end
end

-- When the first of a lane is due; what is fresh was when it came.
local function due_of(l)
  l.stale = true
  if l.front ~= '' or l.fresh > 0 then return 0 end
  return later_head(l)
end

-- One that says that it is in a list must be there, too, when it has nothing to do: work that comes would not put it
-- there again.
local function must_wait(l)
  return l.place == RING or l.place == SHARE or (due_of(l) and l.in_flight < allowance(l))
    or l.fresh ~= call('LLEN', fresh_of(l))
end

function judge.lanes(id)
  local l = lane_of(id)
  if not l then return end
  local waits = l.fresh ~= call('LLEN', fresh_of(l)) and 2 or must_wait(l) and 1 or 0
  for _, value in ipairs({ id, l.place, l.in_flight, waits, l.application, l.front }) do
    answer[#answer + 1] = value
  end
end

local function is_waiting(l)
  if l.fresh ~= call('LLEN', fresh_of(l)) then return false end
  if l.place == TIMER then
    local at = tonumber(call('ZSCORE', TIMERS, l.id) or math.huge)
    return at <= max(due_of(l), paused_until(l))
  end
  if l.place == SHARE then return call('LPOS', SHARED, l.id) end
  return l.place == RING and call('LPOS', P .. 'ring:' .. l.application, l.id) and call('LPOS', TURNS, l.application)
end

function judge.lane(id)
  local l = lane_of(id)
  if not l or not must_wait(l) or is_waiting(l) then return end
  found(id, LANE_NOT_WAITING, true)
  if not healing then return end
  local ring = P .. 'ring:' .. l.application
  l.fresh, l.stale = call('LLEN', fresh_of(l)), true
  call('ZREM', TIMERS, l.id)
  call('LREM', SHARED, 0, l.id)
  call('LREM', ring, 0, l.id)
  l.place, l.timer = NOWHERE, nil
  place(l)
  -- Only a ring that was empty brings its application a turn.
  if call('LLEN', ring) > 0 and not call('LPOS', TURNS, l.application) then call('RPUSH', TURNS, l.application) end
  ring_bell = true
end

function judge.taken(token)
  local entry, deadline = call('HEXISTS', TAKEN, token) == 1, call('ZSCORE', TAKEN_UNTIL, token)
  if entry and not deadline then
    found(token, TAKEN_WITHOUT_DEADLINE, true)
    if healing then
      call('ZADD', TAKEN_UNTIL, now, token)
      ring_bell = true
    end
  elseif deadline and not entry then
    found(token, DEADLINE_WITHOUT_ENTRY, true)
    if healing then call('ZREM', TAKEN_UNTIL, token) end
  end
end

function judge.names(name)
  local raw = call('HGET', P .. 'names', name)
  local key = raw and sub(raw, 1, 15)
  if not raw or call('HEXISTS', EVENTS, key) == 1 then return end
  found(key, NAME_WITHOUT_EVENT, true)
  if not healing then return end
  call('HDEL', P .. 'names', name)
  local id = sub(name, 1, 1) == 'i' and string.match(name, '\n(.*)$')
  local known = id and call('HGET', P .. 'ids', id)
  if known and sub(known, 1, 15) == key then call('HDEL', P .. 'ids', id) end
end

function judge.jobs(key)
  local raw = call('HGET', JOBS, key)
  -- Its second byte is the state; zero is running.
  if not raw or byte(raw, 2) ~= 0 or call('ZSCORE', JOBS_DUE, key) then return end
  found(key, REPLAY_NOT_DUE, true)
  if healing then
    call('ZADD', JOBS_DUE, now, key)
    ring_bell = true
  end
end

-- A claim that has no lease of its own and holds nothing that has one.
function judge.claims(by)
  local keys = #by == 16 and call('HGET', CLAIMS, by)
  if not keys or call('ZSCORE', LEASES, by) then return end
  for from = 1, #keys, 15 do
    local d = delivery(sub(keys, from, from + 14))
    if d and d.state == IN_FLIGHT and d.nonce == by then return end
  end
  found(by, STALE_PROCESS_ENTRY, true)
  if healing then call('HDEL', CLAIMS, by, by .. '#') end
end

-- A lane for a delivery whose own is unknown.
local function open(key, name)
  local d = delivery(key) or fresh_delivery(key)
  if not d or d.state > SCHEDULED then return end
  local l = lane_of(d.lane)
  if l and call('HEXISTS', LANE_NAMES, d.lane) == 1 then return end
  found(key, LANE_MISSING, true)
  if not healing then return end
  if l then
    -- Its record is there, its name is not.
    call('HSET', LANE_IDS, name, l.id)
    call('HSET', LANE_NAMES, l.id, name)
  else
    local id = call('HGET', LANE_IDS, name)
    l = id and lane_of(id)
    if not l then
      l = new_lane(id and tonumber(id, 16) or call('HINCRBY', META, 'last_lane', '1'), string.match(name, '^(.-)\n'))
      call('HSET', LANE_IDS, name, l.id)
      call('HSET', LANE_NAMES, l.id, name)
      l.fresh, l.stale = call('LLEN', fresh_of(l)), true
    end
    d.lane = l.id
    l.kept = l.kept + 1
    if d.state == IN_FLIGHT then l.in_flight = l.in_flight + 1 end
    touch(d)
  end
  if d.state ~= IN_FLIGHT and not is_queued(l, d) then push(l, d.due, key) end
  ring_bell = true
end

local function slots(id, seen, actual)
  local l = lane_of(id)
  if not l or l.in_flight ~= tonumber(seen) then return end
  found(id, LANE_SLOTS_OFF, true)
  if not healing then return end
  l.in_flight, l.stale = tonumber(actual), true
  place(l)
  ring_bell = true
end

-- Only what still stands as it was read is changed.
local function counters()
  for index = first, #ARGV, 3 do
    if (call('HGET', COUNTS, ARGV[index]) or '0') ~= ARGV[index + 1] then return end
  end
  found('', COUNTERS_OFF, true)
  for index = first, #ARGV, 3 do
    if ARGV[index + 2] ~= '0' then count(ARGV[index], tonumber(ARGV[index + 2])) end
  end
end

if what == 'open' then
  open(ARGV[7], ARGV[8])
elseif what == 'slots' then
  slots(ARGV[7], ARGV[8], ARGV[9])
elseif what == 'counters' then
  counters()
else
  if what == 'queue' or what == 'order' then first = 8 end
  for index = first, #ARGV do judge[what](ARGV[index]) end
end
if healing then finish() end
return answer
