-- What moves between stores: what lanes remember on the way out, everything else on the way in. What is there already
-- stays as it is, so that a move may be begun again. Adds first: what has no room is not taken.
--
-- ARGV[4]  'remembered': [5..] numbers of lanes
--          'origin': [5] the salt of the ids
--          'lanes': per lane its name, why it is paused (0: not), until when, allowance, openings
--          'events': per event its key, its record, when it counts as begun if it has no delivery, 1 if it has one; then
--          of that its lane's name, state, reason, mode, why due, recoveries, attempts, budget from, due, first attempt,
--          finished, how many attempts follow, and per attempt its number and its record
--          'names': per name its text, its event's key, the fingerprint, until when, the caller's id of the event
--          'job': [5] its key, [6] its record, [7] the prepared list's key without the shard's tag (may be empty)
--          'end': [5] what was expunged, [6] the largest key (may be empty)
-- Answers  'remembered': per lane its name, why, until when, allowance, openings; the others: 1, or nothing when the
--          store is not in the middle of this move

local NAMES, NAMES_IN_TIME, IDS = P .. 'names', P .. 'names_in_time', P .. 'ids'
local JOBS, JOBS_DUE = P .. 'jobs', P .. 'jobs_due'
local NAME = '>c15c16I8I2'
local arg = 5

local function next_arg()
  local value = ARGV[arg]
  arg = arg + 1
  return value
end

local function next_number() return tonumber(next_arg()) end

local function lane_named(name)
  local id = call('HGET', LANE_IDS, name)
  local l = id and lane_of(id)
  if l then return l, false end
  l = new_lane(id and tonumber(id, 16) or call('HINCRBY', META, 'last_lane', '1'), string.match(name, '^(.-)\n'))
  call('HSET', LANE_IDS, name, l.id)
  call('HSET', LANE_NAMES, l.id, name)
  return l, true
end

local function remembered()
  local found = {}
  for index = 5, #ARGV do
    local l = lane_of(ARGV[index])
    local h = l and l.health
    local name = h and (h.why > 0 or h.allowance > 0 or h.openings > 0) and call('HGET', LANE_NAMES, l.id)
    if name then
      for _, value in ipairs({ name, h.why, h.why > 0 and h.not_before or 0, h.allowance, h.openings }) do
        found[#found + 1] = value
      end
    end
  end
  return found
end

local function is_used()
  return last_key or call('HLEN', EVENTS) > 0 or call('HLEN', P .. 'taken') > 0
    or call('LLEN', ANYBODY .. 'prontos') > 0 or call('ZCARD', WAITING) > 0 or call('LLEN', BURIED) > 0
    or tonumber(call('HGET', P .. 'counts', 'accepted') or '0') > 0
end

local function origin(salt)
  local known = call('HGET', META, 'importing')
  if known == salt then return 1 end
  if known or is_used() then return nil end
  call('HSET', META, 'importing', salt)
  call('HSET', META, 'salt', salt)
  return 1
end

local function lanes_in()
  while arg <= #ARGV do
    local l, fresh = lane_named(next_arg())
    local why, until_ms, most, openings = next_number(), next_number(), next_number(), next_number()
    if fresh then
      l.health = { why = why, openings = openings, allowance = most, failures = 0, successes = 0,
        not_before = until_ms, first_failure = 0 }
    end
  end
end

-- What its event's record begins with, for the caller to keep it; the last attempt goes with the delivery.
local function delivery_in(key, record, known)
  local name = next_arg()
  local state, reason, mode, why, recoveries = next_number(), next_number(), next_number(), next_number(), next_number()
  local tried, budget_from, due, began = next_number(), next_number(), next_number(), next_number()
  local finished, records, last = next_number(), next_number(), ''
  for _ = 1, records do
    local number, attempt = next_number(), next_arg()
    if number == tried then
      last = attempt
    elseif not known then
      attempts[#attempts + 1] = key .. ':' .. number
      attempts[#attempts + 1] = attempt
    end
  end
  if known then return nil end
  local l = lane_named(name)
  local start = pack(EVENT, 2, mode, why, recoveries, 0, budget_from, due, l.id)
  local d = { key = key, state = state, reason = reason, mode = mode, why = why, recoveries = recoveries, flags = 0,
    attempts = tried, budget_from = budget_from, due = due, first = began, finished = finished,
    bytes = #start + #record, lane = l.id, nonce = NO_NONCE, last = last }
  deliveries[key] = d
  touch(d)
  count('accepted', 1)
  count(STATE_NAMES[state], 1)
  if state == DELIVERED then history[#history + 1] = history_row(d) else l.kept = l.kept + 1 end
  if state <= SCHEDULED then push(l, due, key) end
  return start
end

-- The list is in order; what comes out of it stands beside it.
local last_listed = nil
local function list(key)
  last_listed = last_listed or call('LINDEX', EVENT_ORDER, -1) or ''
  if key > last_listed then
    call('RPUSH', EVENT_ORDER, key)
    last_listed = key
  else
    call('ZADD', EVENT_ORDER_OLD, 0, key)
  end
end

local function events_in()
  while arg <= #ARGV do
    local key, record, began, has_delivery = next_arg(), next_arg(), next_number(), next_arg() == '1'
    local known = call('HEXISTS', EVENTS, key) == 1
    local start = pack(EVENT, 2, 0, 0, 0, 0, 0, 0, NO_LANE)
    if has_delivery then start = delivery_in(key, record, known) end
    if not known then
      call('HSET', EVENTS, key, start .. record)
      list(key)
      count('bytes', #start + #record)
      if not has_delivery then call('ZADD', P .. 'order:bare', began, key) end
    end
  end
end

local function names_in()
  while arg <= #ARGV do
    local name, key, fingerprint, until_ms, id = next_arg(), next_arg(), next_arg(), next_number(), next_arg()
    if until_ms > now then
      local made = call('HEXISTS', DELIVERIES, key)
      call('HSET', NAMES, name, pack(NAME, key, fingerprint, until_ms, made) .. id)
      call('RPUSH', NAMES_IN_TIME, pack('>I8', until_ms) .. name)
      local by_id = sub(name, 1, 1) == 'i' and string.match(name, '\n(.*)$')
      local known = by_id and call('HGET', IDS, by_id)
      if by_id and (not known or unpk('>c15I8', known) <= key) then
        call('HSET', IDS, by_id, pack('>c15I8', key, until_ms))
      end
    end
  end
end

local function job_in()
  local key, record, prepared = next_arg(), next_arg(), next_arg()
  call('HSET', JOBS, key, record)
  -- Its second byte is the state; zero is running.
  if byte(record, 2) ~= 0 then return call('ZADD', P .. 'jobs_ended', now, key) end
  call('DEL', P .. 'job:' .. key)
  if prepared ~= '' and call('EXISTS', P .. prepared) == 1 then
    call('RENAME', P .. prepared, P .. 'job:' .. key)
    call('PERSIST', P .. 'job:' .. key)
  end
  call('ZADD', JOBS_DUE, now, key)
end

local function end_of_it()
  local expunged, last = next_number(), next_arg()
  count('expunged', expunged)
  count('accepted', expunged)
  if last > (last_key or '') then call('HSET', META, 'last_key', last) end
  call('HDEL', META, 'importing')
end

if ARGV[4] == 'remembered' then return remembered() end
local answer = 1
if ARGV[4] == 'origin' then
  answer = origin(ARGV[5])
elseif call('HEXISTS', META, 'importing') == 0 then
  return nil
else
  local take = { lanes = lanes_in, events = events_in, names = names_in, job = job_in, ['end'] = end_of_it }
  take[ARGV[4]]()
end
if answer then
  ring_bell = true
  finish()
end
return answer
