-- An examination's judgement of a few things in one step, and their healing in the same step: what is judged here is
-- judged as it stands now, whatever a scan saw. Without healing it writes nothing.
--
-- ARGV[4..6]  what is judged, whether to heal (1 or 0), a lease in ms
-- ARGV[7..]   deliveries: keys · leases: keys · queue: the lane, then keys · lanes: numbers · lane: one number ·
--             taken: tokens · events: keys · names: names · jobs: keys · claims: nonces ·
--             open: a delivery's key, its lane's name · slots: a lane, its count, the true one ·
--             counters: names and values as they were read, each with what is to be added
-- Answers     per thing that is wrong: which, the tag of the finding, whether it was healed (1 or 0);
--             lanes: per lane its number, place, attempts in flight, whether it must be waiting, its application

local ALIVE_NOT_QUEUED, QUEUED_WITHOUT_DELIVERY, IN_FLIGHT_WITHOUT_LEASE, LEASE_WITHOUT_DELIVERY = 3, 4, 5, 6
local DELIVERY_WITHOUT_EVENT, EVENT_WITHOUT_DELIVERIES, NAME_WITHOUT_EVENT, LANE_MISSING = 7, 8, 9, 11
local LANE_NOT_WAITING, LANE_SLOTS_OFF, TAKEN_WITHOUT_DEADLINE, DEADLINE_WITHOUT_ENTRY = 12, 13, 14, 15
local REPLAY_NOT_DUE, STALE_PROCESS_ENTRY, COUNTERS_OFF = 21, 22, 1
local REASON_MALFORMED = 9

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
    call('ZREM', order_of(d.was), d.key)
    return
  end
  local l = lane_of(d.lane)
  if l then remove(l, d.key) end
  rest(d, NEXT_DEAD, REASON_MALFORMED, 0, 0, now)
end

function judge.deliveries(key)
  local d = delivery(key)
  if not d then return end
  if call('HEXISTS', EVENTS, d.event) == 0 then return without_event(d) end
  if d.state > SCHEDULED then return end
  local l = lane_of(d.lane)
  if not l or call('HEXISTS', LANE_NAMES, d.lane) == 0 then return found(key, LANE_MISSING, false) end
  if d.state == IN_FLIGHT then
    if call('ZSCORE', LEASES, key) then return end
    found(key, IN_FLIGHT_WITHOUT_LEASE, true)
    -- Whoever holds it still says so in time; nobody else does.
    if healing then
      call('ZADD', LEASES, now + lease_ms, key)
      ring_bell = true
    end
  elseif not call('ZSCORE', queue_of(l), key) then
    found(key, ALIVE_NOT_QUEUED, true)
    if healing then
      l.stale = true
      push(l, d.due, key)
      ring_bell = true
    end
  end
end

function judge.leases(key)
  local d = delivery(key)
  if (d and d.state == IN_FLIGHT) or not call('ZSCORE', LEASES, key) then return end
  found(key, LEASE_WITHOUT_DELIVERY, true)
  if healing then call('ZREM', LEASES, key) end
end

function judge.queue(key)
  local lane = tonumber(ARGV[7])
  local l = lane_of(lane)
  local d = delivery(key)
  local belongs = d and (d.state == PENDING or d.state == SCHEDULED) and d.lane == lane
  if not l or belongs or not call('ZSCORE', queue_of(l), key) then return end
  found(key, QUEUED_WITHOUT_DELIVERY, true)
  if healing then remove(l, key) end
end

-- One that says that it is in a list must be there, too, when it has nothing to do: work that comes would not put it
-- there again.
local function must_wait(l)
  l.stale = true
  return l.place == RING or l.place == SHARE or (head(l) and l.in_flight < allowance(l))
end

function judge.lanes(id)
  local l = lane_of(id)
  if not l then return end
  for _, value in ipairs({ id, l.place, l.in_flight, must_wait(l) and 1 or 0, l.application }) do
    answer[#answer + 1] = value
  end
end

local function is_waiting(l)
  if l.place == TIMER then
    local at = tonumber(call('ZSCORE', TIMERS, l.id) or math.huge)
    return at <= math.max(head(l), paused_until(l))
  end
  if l.place == SHARE then return call('LPOS', SHARED, l.id) end
  return l.place == RING and call('LPOS', ring_of(l.application), l.id) and call('LPOS', TURNS, l.application)
end

function judge.lane(id)
  local l = lane_of(id)
  if not l or not must_wait(l) or is_waiting(l) then return end
  found(id, LANE_NOT_WAITING, true)
  if not healing then return end
  call('ZREM', TIMERS, l.id)
  call('LREM', SHARED, 0, l.id)
  call('LREM', ring_of(l.application), 0, l.id)
  l.place, l.timer = NOWHERE, nil
  place(l)
  if l.place == RING and not call('LPOS', TURNS, l.application) then call('RPUSH', TURNS, l.application) end
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

-- Nobody knows any more whether it was delivered: it is kept as long as one that nobody was to receive.
function judge.events(key)
  if call('HEXISTS', EVENTS, key) == 0 or call('ZSCORE', BARE, key) then return end
  if call('HEXISTS', DELIVERIES, key_after(key)) == 1 then return end
  found(key, EVENT_WITHOUT_DELIVERIES, true)
  if healing then call('ZADD', BARE, now, key) end
end

function judge.names(name)
  local raw = call('HGET', P .. 'names', name)
  if not raw or call('HEXISTS', EVENTS, string.sub(raw, 1, 15)) == 1 then return end
  found(string.sub(raw, 1, 15), NAME_WITHOUT_EVENT, true)
  if not healing then return end
  call('HDEL', P .. 'names', name)
  call('ZREM', P .. 'names_by_age', name)
  local id = string.sub(name, 1, 1) == 'i' and string.match(name, '\n(.*)$')
  local known = id and call('HGET', P .. 'ids', id)
  if known and string.sub(known, 1, 15) == string.sub(raw, 1, 15) then call('HDEL', P .. 'ids', id) end
end

function judge.jobs(key)
  local raw = call('HGET', JOBS, key)
  -- Its second byte is the state; zero is running.
  if not raw or string.byte(raw, 2) ~= 0 or call('ZSCORE', JOBS_DUE, key) then return end
  found(key, REPLAY_NOT_DUE, true)
  if healing then
    call('ZADD', JOBS_DUE, now, key)
    ring_bell = true
  end
end

function judge.claims(nonce)
  if call('HEXISTS', P .. 'claims', nonce) == 0 or call('ZSCORE', P .. 'claims_by_age', nonce) then return end
  found(nonce, STALE_PROCESS_ENTRY, true)
  if healing then call('HDEL', P .. 'claims', nonce) end
end

-- A lane for a delivery whose own is unknown.
local function open(key, name)
  local d = delivery(key)
  if not d or d.state > SCHEDULED then return end
  local l = lane_of(d.lane)
  if l and call('HEXISTS', LANE_NAMES, d.lane) == 1 then return end
  found(key, LANE_MISSING, true)
  if not healing then return end
  local application = string.match(name, '^(.-)\n')
  if l then
    -- Its record is there, its name is not.
    call('HSET', LANE_IDS, name, l.id)
    call('HSET', LANE_NAMES, l.id, name)
  else
    local id = call('HGET', LANE_IDS, name)
    l = id and lane_of(id)
    if not l then
      id = id or call('HINCRBY', META, 'last_lane', 1)
      call('HSET', LANE_IDS, name, id)
      call('HSET', LANE_NAMES, id, name)
      l = new_lane(tonumber(id), application)
      l.stale = true
    end
    d.lane = l.id
    l.kept = l.kept + 1
    if d.state == IN_FLIGHT then l.in_flight = l.in_flight + 1 end
    touch(d)
  end
  if d.state ~= IN_FLIGHT then push(l, d.due, key) end
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
  if what == 'queue' then first = 8 end
  for index = first, #ARGV do judge[what](ARGV[index]) end
end
if healing then finish() end
return answer
