-- One round trip of a worker: settle, extend, recover, replay, take, claim. Removes first, adds second.
--
-- ARGV[4..9]   settlements, renewals, deliveries wanted (-1: no claim), free slots, slots held by this process,
--              lease in ms
-- ARGV[10..11] the claim's nonce (16 bytes), when its leases end (the caller's clock)
-- then         per settlement its fixed part, its attempt's record (may be empty), and the text with which it goes
--              back to the public keys (empty: it does not); per renewal its fixed part

local CLAIMS, CLAIMS_BY_AGE = P .. 'claims', P .. 'claims_by_age'
local SETTLEMENT = '>c15c16BBBBBBI4I4I8I8BI8I8I4'
local RENEWAL = '>c15c16I8'
local BATCH = 500

-- A write that frees memory, even when there is nothing to free, lets the rest of the script add at `maxmemory`.
call('HDEL', META, '-')

local settlements, renewals, want = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local free, held, lease_ms = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local nonce, lease_until = ARGV[10], tonumber(ARGV[11])
local arg = 12
will_claim = want >= 0

-- ---- settle

local attempts = {}

-- Events that came in through the ready list wait and die where everybody can see them (S2.1).
local function settle_in_public(d, next, due, text)
  if text == '' or not has(d.flags, ADOPTED) or has(d.flags, WISHED_CANCEL) then return false end
  if next == NEXT_SCHEDULED then
    give_up_to_public(d)
    call('ZADD', WAITING, due, text)
    return true
  end
  if next ~= NEXT_DEAD then return false end
  give_up_to_public(d)
  call('RPUSH', BURIED, text)
  return true
end

local function settle(fixed, record, text)
  local key, by, next, reason, next_why, mode, why, recoveries, tried, budget_from, first, due, news, pause_until,
    at, number = unpk(SETTLEMENT, fixed)
  local d = delivery(key)
  if not d or d.state ~= IN_FLIGHT or d.nonce ~= by then return end
  end_lease(d)
  local l = lane_of(d.lane)
  if l then
    l.answers = next == NEXT_DELIVERED and 1 or 0
    release(l, news, ours(pause_until), ours(at))
  end
  d.mode, d.why, d.recoveries, d.attempts, d.budget_from, d.first = mode, why, recoveries, tried, budget_from, first
  if settle_in_public(d, next, ours(due), text) then return end
  if record ~= '' then
    attempts[#attempts + 1] = key .. ':' .. string.format('%d', number)
    attempts[#attempts + 1] = record
  end
  rest(d, next, reason, ours(due), next_why, ours(at))
end

for _ = 1, settlements do
  settle(ARGV[arg], ARGV[arg + 1], ARGV[arg + 2])
  arg = arg + 3
end

-- ---- extend

local lost, extended = {}, {}
for index = 1, renewals do
  local key, by, until_ms = unpk(RENEWAL, ARGV[arg])
  arg = arg + 1
  local d = delivery(key)
  if d and d.state == IN_FLIGHT and d.nonce == by then
    extended[#extended + 1] = ours(until_ms)
    extended[#extended + 1] = key
  else
    lost[#lost + 1] = index - 1
  end
end

local taken, answer, unfinished = {}, {}, 0

-- ---- recover

-- When no script ran for half a lease, Redis was away: workers that live get time to say so first.
local function in_grace()
  if clock_is_ours then return false end
  if last_run and now - last_run > lease_ms / 2 then
    call('HSET', META, 'grace', string.format('%d', now + lease_ms))
    return true
  end
  return tonumber(call('HGET', META, 'grace') or '0') > now
end

-- What was held when its process died or lost it: again, unless that may repeat what must not be, or it kills us.
local function recover(key)
  local d = delivery(key)
  leases_gone[#leases_gone + 1] = key
  if not d or d.state ~= IN_FLIGHT then return end
  d.nonce = NO_NONCE
  touch(d)
  local l = lane_of(d.lane)
  if l then release(l, NEUTRAL, 0, now) end
  d.recoveries = math.min(d.recoveries + 1, 255)
  if d.mode == AT_MOST_ONCE then return rest(d, NEXT_DEAD, REASON_AMBIGUOUS, 0, 0, now) end
  if d.recoveries >= MAX_RECOVERIES then return rest(d, NEXT_DEAD, REASON_POISON, 0, 0, now) end
  rest(d, NEXT_RELEASED, 0, 0, 0, now)
end

local function recover_expired()
  local renewed = {}
  for index = 2, #extended, 2 do renewed[extended[index]] = true end
  local settled = {}
  for _, key in ipairs(leases_gone) do settled[key] = true end
  local expired = call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, BATCH)
  for _, key in ipairs(expired) do
    if not renewed[key] and not settled[key] then recover(key) end
  end
  if #expired == BATCH then unfinished = 1 end
end

-- ---- replay

-- version, state, filtered reason (0: any), since plus 1 and until plus 1 (0: open), rate, estimated, done, failed,
-- created, finished plus 1 (0: not)
local JOB = '>BBBI8I8I4I8I8I8I8I8'
local RUNNING, FINISHED = 0, 1

local function run_job(id, room)
  local raw = call('HGET', JOBS, id)
  if not raw then
    call('ZREM', JOBS_DUE, id)
    return room
  end
  local version, state, reason, since, until_ms, rate, estimated, done, failed, created, finished = unpk(JOB, raw)
  local turn = function() return created + math.ceil((done + failed) * 1000 / rate) end
  local left = P .. 'job:' .. id
  local ended = false
  while room > 0 and turn() <= now do
    local key = call('LPOP', left)
    if not key then
      ended = true
      break
    end
    local d = delivery(key)
    if d and d.state == DEAD then
      renew(d)
      done = done + 1
    else
      failed = failed + 1
    end
    room = room - 1
  end
  if ended or call('LLEN', left) == 0 then
    state, finished = FINISHED, now + 1
    call('ZREM', JOBS_DUE, id)
  else
    call('ZADD', JOBS_DUE, turn(), id)
  end
  call('HSET', JOBS, id,
    pack(JOB, version, state, reason, since, until_ms, rate, estimated, done, failed, created, finished))
  return room
end

local function run_replays()
  local room = BATCH
  for _, id in ipairs(call('ZRANGEBYSCORE', JOBS_DUE, '-inf', now, 'LIMIT', 0, 20)) do
    room = run_job(id, room)
    if room == 0 then
      unfinished = 1
      return
    end
  end
end

-- ---- take

local function ready_timers()
  local ids = call('ZRANGEBYSCORE', TIMERS, '-inf', now, 'LIMIT', 0, BATCH)
  for _, id in ipairs(ids) do
    local l = lane_of(id)
    if l then
      put(l, NOWHERE)
      place(l)
    else
      call('ZREM', TIMERS, id)
    end
  end
  if #ids == BATCH then unfinished = 1 end
end

local function look_at_shares_again()
  for _, id in ipairs(call('LPOP', SHARED, BATCH) or {}) do
    local l = lane_of(id)
    if l and l.place == SHARE then
      l.place = NOWHERE
      place(l)
    end
  end
end

-- One entry of a lane whose turn it is; the lane then goes where it waits for its next turn.
local function take_from(l, left)
  local slots = left + held + #taken
  local no_first, no_more = left < floor(slots / FIRST_PART), left < floor(slots / MORE_PART)
  if not l.near then
    load(l)
    l.stale = false
  end
  local due = l.head
  if not due then return end
  if due > now or paused_until(l) > now then return place(l) end
  if l.in_flight >= allowance(l) then return end
  local share = floor((left + l.in_flight) / 2)
  local scarce = no_more
  if l.in_flight == 0 then scarce = no_first end
  if l.in_flight >= math.max(share, 1) or (scarce and l.answers == 0) then return put(l, SHARE) end
  local key = l.near[2 * l.at - 1]
  l.at = l.at + 1
  l.gone = l.gone or {}
  table.insert(l.gone, key)
  l.head = tonumber(l.near[2 * l.at] or '')
  if not l.head and l.more then load(l) end
  local d = delivery(key)
  -- An entry without its delivery is what an operator left behind.
  if d and d.state ~= IN_FLIGHT then
    l.in_flight = l.in_flight + 1
    taken[#taken + 1] = key
  end
  place(l)
end

-- The next application's turn: those in Redis first, then those that had one in this script.
local own_turns, turns_drained = { first = 1 }, false
local function next_turn()
  if not turns_drained then
    local application = call('LPOP', TURNS)
    if application then return application end
    turns_drained = true
  end
  local application = own_turns[own_turns.first]
  if application then own_turns.first = own_turns.first + 1 end
  return application
end

local function next_lane(application)
  local ring = own_rings[application]
  if not ring then
    ring = { first = 1, in_redis = call('LLEN', ring_of(application)) }
    own_rings[application] = ring
  end
  if ring.in_redis > 0 then
    ring.in_redis = ring.in_redis - 1
    return call('LPOP', ring_of(application))
  end
  local id = ring[ring.first]
  if id then ring.first = ring.first + 1 end
  return id
end

local function take_turns()
  taking = true
  local looks = 0
  while #taken < want do
    local application = next_turn()
    if not application then break end
    local id = next_lane(application)
    local l = id and lane_of(id)
    if l then
      l.place = NOWHERE
      take_from(l, math.max(free - #taken, 0))
    end
    local ring = own_rings[application]
    if ring.in_redis > 0 or ring[ring.first] then own_turns[#own_turns + 1] = application end
    looks = looks + 1
    if looks == want + BATCH then
      unfinished = 1
      break
    end
  end
  taking = false
  for application, ring in pairs(own_rings) do
    if ring[ring.first] then
      for from = ring.first, #ring, CHUNK do
        call('RPUSH', ring_of(application), unpack(ring, from, math.min(from + CHUNK - 1, #ring)))
      end
    end
  end
  for from = own_turns.first, #own_turns, CHUNK do
    call('RPUSH', TURNS, unpack(own_turns, from, math.min(from + CHUNK - 1, #own_turns)))
  end
end

-- ---- claim

-- The leases a claim got whose answer was lost, with their full time again.
local function repeat_claim(known)
  for from = 1, #known, 15 do
    local key = string.sub(known, from, from + 14)
    local d = delivery(key)
    if d and d.state == IN_FLIGHT and d.nonce == nonce then
      taken[#taken + 1] = key
      extended[#extended + 1] = ours(lease_until)
      extended[#extended + 1] = key
    end
  end
end

local function lease_taken()
  for _, key in ipairs(taken) do
    local d = delivery(key)
    d.nonce = nonce
    go(d, IN_FLIGHT)
    extended[#extended + 1] = ours(lease_until)
    extended[#extended + 1] = key
  end
  if #taken > 0 then
    call('HSET', CLAIMS, nonce, table.concat(taken))
    call('ZADD', CLAIMS_BY_AGE, now, nonce)
  end
end

local function forget_old_claims()
  local old = call('ZRANGEBYSCORE', CLAIMS_BY_AGE, '-inf', now - 4 * lease_ms, 'LIMIT', 0, 4)
  if #old > 0 then
    call('ZREM', CLAIMS_BY_AGE, unpack(old))
    call('HDEL', CLAIMS, unpack(old))
  end
end

-- What the caller needs of each delivery, and the names of their lanes.
local function describe_taken()
  local events, names, seen = {}, {}, {}
  for index, key in ipairs(taken) do
    local d = delivery(key)
    events[#events + 1] = d.event
    if not seen[d.lane] then
      seen[d.lane] = true
      names[#names + 1] = d.lane
      names[#names + 1] = call('HGET', LANE_NAMES, d.lane) or ''
    end
    answer[3 * index - 2], answer[3 * index - 1] = key, print_delivery(d)
  end
  for from = 1, #events, CHUNK do
    local found = call('HMGET', EVENTS, unpack(events, from, math.min(from + CHUNK - 1, #events)))
    for index = 1, math.min(CHUNK, #events - from + 1) do answer[3 * (from + index - 1)] = found[index] end
  end
  return names
end

local function head_score(order) return tonumber(call('ZRANGE', order, 0, 0, 'WITHSCORES')[2] or math.huge) end

local function next_wake()
  local wake = math.huge
  for _, order in ipairs({ TIMERS, LEASES, JOBS_DUE, WAITING, TAKEN_UNTIL }) do
    wake = math.min(wake, head_score(order))
  end
  if wake == math.huge then return -1 end
  -- A score of somebody else's may be anything: seconds, or a fraction.
  return math.max(floor(wake - shift), 0)
end

local known = will_claim and call('HGET', CLAIMS, nonce)
if will_claim then
  if not in_grace() then recover_expired() end
  run_replays()
end
each_chunk(leases_gone, 1, function(...) call('ZREM', LEASES, ...) end)
each_chunk(attempts, 2, function(...) call('HSET', ATTEMPTS, ...) end)
if known then
  repeat_claim(known)
elseif will_claim then
  ready_timers()
  look_at_shares_again()
  take_turns()
  lease_taken()
  forget_old_claims()
end
each_chunk(extended, 2, function(...) call('ZADD', LEASES, ...) end)
if will_claim then
  sweep(DELIVERED, 8)
  sweep(CANCELLED, 4)
  sweep_bare(4)
end
local names = describe_taken()
local paused_lanes = {}
for _, pause in ipairs(paused) do
  local name = call('HGET', LANE_NAMES, pause[1])
  if name then
    for _, value in ipairs({ name, pause[2] - shift, pause[3] }) do paused_lanes[#paused_lanes + 1] = value end
  end
end
-- Whether the public keys have something to adopt, and when the first that waits there is due (-1: none does).
local function ingress()
  local waits = head_score(WAITING)
  local some = call('LLEN', READY) > 0 or waits <= now or head_score(TAKEN_UNTIL) <= now
  return some and 1 or 0, waits < math.huge and floor(waits) or -1
end

local bell = finish()
local adopt, waits = 0, -1
if will_claim then adopt, waits = ingress() end
return { bell, unfinished, will_claim and next_wake() or -1, lost, paused_lanes, names, answer, shift, rebased,
  adopt, waits }
