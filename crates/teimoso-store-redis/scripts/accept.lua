-- Acceptance: events, their names, their deliveries and the counters, in one step. Adds first, so that Redis refuses
-- it when memory is full: what cannot be kept is not accepted.
--
-- ARGV[4..5]  events, whether at-most-once may be promised (1 or 0)
-- then        per event: application, caller's id, idempotency key, fingerprint, mode, lane, origin,
--             not before (-1: at once), the event's record

local NAMES, NAMES_BY_AGE, IDS = P .. 'names', P .. 'names_by_age', P .. 'ids'
-- event, fingerprint, remembered until, deliveries; then the caller's id
local NAME = '>c15c16I8I2'
local NAME_BYTES = 15 + 16 + 8 + 2
local OK, ID_TAKEN, KEY_REUSED, MODE_UNAVAILABLE, TOO_MANY_LANES = 0, 1, 2, 3, 4
local FIRST, DELIVER_AT = 0, 8

local arg = 6
local at_most_once = ARGV[5] == '1'

local function names_of(event)
  local names = {}
  if event.id ~= '' then names[1] = { 'i' .. event.application .. '\n' .. event.id, ID_TAKEN } end
  if event.key ~= '' then names[#names + 1] = { 'k' .. event.application .. '\n' .. event.key, KEY_REUSED } end
  return names
end

-- The caller's id alone leads to the event accepted last under it, whatever its application.
local function remember_id(text, key, until_ms)
  local known = call('HGET', IDS, text)
  if known then
    local other, other_until = unpk('>c15I8', known)
    if other > key and other_until > now then return end
  end
  call('HSET', IDS, text, pack('>c15I8', key, until_ms))
end

local function remember(event, key, deliveries_made, id)
  local until_ms = now + NAMES_MS
  for _, name in ipairs(names_of(event)) do
    call('HSET', NAMES, name[1], pack(NAME, key, event.fingerprint, until_ms, deliveries_made) .. id)
    call('ZADD', NAMES_BY_AGE, until_ms, name[1])
  end
  if event.id ~= '' then remember_id(event.id, key, until_ms) end
end

-- The event that has one of these names; the caller's id is the stronger claim. A repetition that brings one more
-- name has both from then on.
local function find(event)
  local same, new_name = nil, false
  for _, name in ipairs(names_of(event)) do
    local raw = call('HGET', NAMES, name[1])
    local key, fingerprint, until_ms, made
    if raw then key, fingerprint, until_ms, made = unpk(NAME, raw) end
    if not raw or until_ms <= now then
      new_name = true
    elseif fingerprint ~= event.fingerprint then
      return nil, name[2]
    elseif not same then
      same = { key = key, made = made, id = string.sub(raw, NAME_BYTES + 1) }
    end
  end
  if same and new_name then remember(event, same.key, same.made, same.id) end
  return same
end

local lane_count = nil

-- The lane of a destination: by URL, or by origin past the limit; nil when there are too many.
local function lane_for(event)
  lane_count = lane_count or call('HLEN', LANE_IDS)
  local name = event.application .. '\n' .. event.lane
  local id = call('HGET', LANE_IDS, name)
  if not id and lane_count >= MAX_URL_LANES then
    name = event.application .. '\n' .. event.origin
    id = call('HGET', LANE_IDS, name)
  end
  if id then return lane_of(id) end
  if lane_count >= MAX_LANES then return nil end
  id = call('HINCRBY', META, 'last_lane', 1)
  call('HSET', LANE_IDS, name, id)
  call('HSET', LANE_NAMES, id, name)
  lane_count = lane_count + 1
  return new_lane(id, event.application)
end

local function new_delivery(event, event_key, l)
  local key = next_key()
  local due, why = now, FIRST
  if event.deliver_at > now then due, why = event.deliver_at, DELIVER_AT end
  local d = { key = key, state = PENDING, reason = 0, mode = event.mode, why = why, recoveries = 0, flags = 0,
    attempts = 0, budget_from = 0, due = due, first = 0, finished = 0, lane = l.id, nonce = NO_NONCE,
    event = event_key }
  deliveries[key] = d
  touch(d)
  count('accepted', 1)
  count('pending', 1)
  l.kept = l.kept + 1
  push(l, due, key)
  ring_bell = true
end

local function standing(event_key, made)
  local found, key = {}, event_key
  for _ = 1, made do
    key = key_after(key)
    local d = delivery(key)
    if d then
      found[#found + 1] = key
      found[#found + 1] = d.state
    end
  end
  return found
end

local records, order, bare = {}, {}, {}

local function keep(event, key)
  records[#records + 1] = key
  records[#records + 1] = event.record
  order[#order + 1] = 0
  order[#order + 1] = key
  count('bytes', #event.record)
end

local function accept(event)
  local same, rejected = find(event)
  if rejected then return { rejected } end
  if same then return { OK, same.key, same.id, 1, standing(same.key, same.made) } end
  if event.mode == AT_MOST_ONCE and not at_most_once then return { MODE_UNAVAILABLE } end
  local l = nil
  if event.lane ~= '' then
    l = lane_for(event)
    if not l then return { TOO_MANY_LANES } end
  end
  local key = next_key()
  local made = l and 1 or 0
  remember(event, key, made, event.id)
  keep(event, key)
  if l then
    new_delivery(event, key, l)
  else
    bare[#bare + 1] = now
    bare[#bare + 1] = key
  end
  return { OK, key, event.id, 0, standing(key, made) }
end

local function forget_old_names()
  local old = call('ZRANGEBYSCORE', NAMES_BY_AGE, '-inf', now, 'LIMIT', 0, 100)
  for _, name in ipairs(old) do
    call('HDEL', NAMES, name)
    call('ZREM', NAMES_BY_AGE, name)
    local id = string.sub(name, 1, 1) == 'i' and string.match(name, '\n(.*)$')
    local known = id and call('HGET', IDS, id)
    if known then
      local _, until_ms = unpk('>c15I8', known)
      if until_ms <= now then call('HDEL', IDS, id) end
    end
  end
end

local answers = {}
for index = 1, tonumber(ARGV[4]) do
  answers[index] = accept({ application = ARGV[arg], id = ARGV[arg + 1], key = ARGV[arg + 2],
    fingerprint = ARGV[arg + 3], mode = tonumber(ARGV[arg + 4]), lane = ARGV[arg + 5], origin = ARGV[arg + 6],
    deliver_at = tonumber(ARGV[arg + 7]), record = ARGV[arg + 8] })
  arg = arg + 9
end
each_chunk(records, 2, function(...) call('HSET', EVENTS, ...) end)
each_chunk(order, 2, function(...) call('ZADD', EVENT_ORDER, ...) end)
each_chunk(bare, 2, function(...) call('ZADD', BARE, ...) end)
local bell = finish()
forget_old_names()
return { bell, answers }
