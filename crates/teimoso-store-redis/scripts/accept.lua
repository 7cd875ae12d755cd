-- Acceptance: events, their names, their deliveries and the counters, in one step. Adds first, so that Redis refuses
-- it when memory is full: what cannot be kept is not accepted.
--
-- ARGV[4..7]  events, whether at-most-once may be promised (1 or 0), destinations, events that are named
-- then        per destination: application, lane (empty: nobody), origin
-- then        per event: which destination, mode, 1 if it is named plus 2 if it is not for at once, not before, and if it
--             is named fingerprint, length of the caller's id, that id, idempotency key, packed; the event's record
-- Answers     the bell, and per event its key; or {0, key, caller's id, its delivery's state if it has one} when it was
--             known, or {what speaks against it}

local NAMES, NAMES_IN_TIME, IDS = P .. 'names', P .. 'names_in_time', P .. 'ids'
-- event, fingerprint, remembered until, deliveries; then the caller's id
local NAME, NAME_BYTES = '>c15c16I8I2', 15 + 16 + 8 + 2
local OK, ID_TAKEN, KEY_REUSED, MODE_UNAVAILABLE, TOO_MANY_LANES = 0, 1, 2, 3, 4
local FIRST, DELIVER_AT = 0, 8

local events, at_most_once, places = tonumber(ARGV[4]), ARGV[5] == '1', tonumber(ARGV[6])
local named_events, first_event = tonumber(ARGV[7]), 8 + 3 * places

-- ---- destinations

local destinations = {}
do
  local names = {}
  for index = 1, places do
    local arg = 5 + 3 * index
    destinations[index] = { application = ARGV[arg], lane = ARGV[arg + 1], origin = ARGV[arg + 2] }
    names[index] = ARGV[arg] .. '\n' .. ARGV[arg + 1]
  end
  local ids, known = fetch(LANE_IDS, names), {}
  for index = 1, places do
    if ids[index] then
      destinations[index].id = tonumber(ids[index])
      known[#known + 1] = ids[index]
    end
  end
  load_lanes(known)
end

-- The lane of a destination: by URL, or by origin past the limit; nil when there are too many.
local function lane_for(to)
  if to.id then return lane_of(to.id) end
  local name, lane_count = to.application .. '\n' .. to.lane, call('HLEN', LANE_IDS)
  local id = call('HGET', LANE_IDS, name)
  if not id and lane_count >= MAX_URL_LANES then
    name = to.application .. '\n' .. to.origin
    id = call('HGET', LANE_IDS, name)
  end
  if not id then
    if lane_count >= MAX_LANES then return nil end
    id = call('HINCRBY', META, 'last_lane', 1)
    call('HSET', LANE_IDS, name, id)
    call('HSET', LANE_NAMES, id, name)
    to.id = id
    return new_lane(id, to.application)
  end
  to.id = tonumber(id)
  return lane_of(to.id)
end

-- ---- names

-- What is known of the names of this call, by name; what it makes known.
local names_known, ids_known, names_kept, names_dated, ids_kept, made_here = {}, {}, {}, {}, {}, {}
local named = {}

local function read_names()
  local names, ids = {}, {}
  for index = 1, events do
    local meta = ARGV[first_event + 2 * index - 2]
    if byte(meta, 4) % 2 == 1 then
      local place, _, _, _, fingerprint, length = unpk('>I2BBI8c16I2', meta)
      local application = destinations[place].application
      local event = { fingerprint = fingerprint, id = sub(meta, 31, 30 + length) }
      local key = sub(meta, 31 + length)
      if event.id ~= '' then
        event[1] = { 'i' .. application .. '\n' .. event.id, ID_TAKEN }
        ids[#ids + 1] = event.id
      end
      if key ~= '' then event[#event + 1] = { 'k' .. application .. '\n' .. key, KEY_REUSED } end
      for _, name in ipairs(event) do names[#names + 1] = name[1] end
      named[index] = event
    end
  end
  local found = fetch(NAMES, names)
  for index = 1, #names do names_known[names[index]] = found[index] end
  found = fetch(IDS, ids)
  for index = 1, #ids do ids_known[ids[index]] = found[index] end
end

-- The caller's id alone leads to the event accepted last under it, whatever its application.
local function remember_id(text, key, until_ms)
  local known = ids_known[text]
  if known then
    local other, other_until = unpk('>c15I8', known)
    if other > key and other_until > now then return end
  end
  ids_known[text] = pack('>c15I8', key, until_ms)
  ids_kept[#ids_kept + 1] = text
  ids_kept[#ids_kept + 1] = ids_known[text]
end

local function remember(event, key, made, id)
  local until_ms = now + NAMES_MS
  local record = pack(NAME, key, event.fingerprint, until_ms, made) .. id
  for _, name in ipairs(event) do
    names_known[name[1]] = record
    names_kept[#names_kept + 1] = name[1]
    names_kept[#names_kept + 1] = record
    names_dated[#names_dated + 1] = pack('>I8', until_ms) .. name[1]
  end
  if event.id ~= '' then remember_id(event.id, key, until_ms) end
end

-- The event that has one of these names; the caller's id is the stronger claim. A repetition that brings one more
-- name has both from then on.
local function find(event)
  local same, new_name = nil, false
  for _, name in ipairs(event) do
    local raw = names_known[name[1]]
    local key, fingerprint, until_ms, made
    if raw then key, fingerprint, until_ms, made = unpk(NAME, raw) end
    if not raw or until_ms <= now then
      new_name = true
    elseif fingerprint ~= event.fingerprint then
      return nil, name[2]
    elseif not same then
      same = { key = key, made = made, id = sub(raw, NAME_BYTES + 1) }
    end
  end
  if same and new_name then remember(event, same.key, same.made, same.id) end
  return same
end

-- What an event that is known already is answered.
local function standing(same)
  local raw = same.made > 0 and call('HGET', DELIVERIES, same.key)
  local waits = made_here[same.key] or call('HEXISTS', EVENTS, same.key) == 1
  if same.made == 0 or not (raw or waits) then return { OK, same.key, same.id } end
  return { OK, same.key, same.id, raw and byte(raw, 2) or PENDING }
end

local function forget_old_names()
  local first = call('LINDEX', NAMES_IN_TIME, 0)
  if not first or unpk('>I8', first) > now then return end
  local names, gone, ids = {}, {}, {}
  for _, entry in ipairs(call('LRANGE', NAMES_IN_TIME, 0, 99)) do
    if unpk('>I8', entry) > now then break end
    names[#names + 1] = sub(entry, 9)
  end
  local found = fetch(NAMES, names)
  for index, name in ipairs(names) do
    local _, _, until_ms = unpk(NAME, found[index] or pack(NAME, name, name, now, 0))
    if until_ms <= now then
      gone[#gone + 1] = name
      if sub(name, 1, 1) == 'i' then ids[#ids + 1] = string.match(name, '\n(.*)$') end
    end
  end
  call('LTRIM', NAMES_IN_TIME, #names, -1)
  write('HDEL', NAMES, gone)
  found, gone = fetch(IDS, ids), {}
  for index, id in ipairs(ids) do
    local _, until_ms = unpk('>c15I8', found[index] or pack('>c15I8', id, now + 1))
    if until_ms <= now then gone[#gone + 1] = id end
  end
  write('HDEL', IDS, gone)
end

-- ---- events

local records, order, bare, bytes, deliveries_made = {}, {}, {}, 0, 0
local now_packed = pack('>I8', now)

-- What a delivery begins with; the same for all of a call that go to one lane at once.
local function head_of(to, l, mode, deliver_at)
  if deliver_at > now then return pack(EVENT, 2, mode, DELIVER_AT, 0, 0, 0, deliver_at, l.id) end
  if to.mode ~= mode then
    to.mode, to.head = mode, pack(EVENT, 2, mode, FIRST, 0, 0, 0, now, l and l.id or 0)
  end
  return to.head
end

local function accept(index)
  local meta, deliver_at = ARGV[first_event + 2 * index - 2], 0
  local high, low, mode, flags = byte(meta, 1, 4)
  if flags >= 2 then deliver_at = unpk('>I8', meta, 5) end
  local event = named[index]
  if event then
    local same, rejected = find(event)
    if rejected then return { rejected } end
    if same then return standing(same) end
  end
  if mode == AT_MOST_ONCE and not at_most_once then return { MODE_UNAVAILABLE } end
  local to, l = destinations[256 * high + low], nil
  if to.lane ~= '' then
    l = lane_for(to)
    if not l then return { TOO_MANY_LANES } end
  end
  local key = next_key()
  if event then
    made_here[key] = true
    remember(event, key, l and 1 or 0, event.id)
  end
  local record = head_of(to, l, mode, l and deliver_at or 0) .. ARGV[first_event + 2 * index - 1]
  local at = #records
  records[at + 1] = key
  records[at + 2] = record
  order[#order + 1] = key
  bytes = bytes + #record
  if l then
    deliveries_made = deliveries_made + 1
    l.kept = l.kept + 1
    if deliver_at > now then push(l, deliver_at, key) else enqueue(l, key .. now_packed) end
  else
    bare[#bare + 1] = now
    bare[#bare + 1] = key
  end
  return key
end

if named_events > 0 then read_names() end
local answers = {}
for index = 1, events do answers[index] = accept(index) end
write('HSET', EVENTS, records)
write('RPUSH', EVENT_ORDER, order)
write('ZADD', P .. 'order:bare', bare)
write('HSET', NAMES, names_kept)
write('RPUSH', NAMES_IN_TIME, names_dated)
write('HSET', IDS, ids_kept)
for index = 1, #lane_list do
  local l = lane_list[index]
  if l.front ~= '' then
    if not l.said then say_due(l, now) end
    place(l)
  end
end
if deliveries_made > 0 then
  ring_bell = true
  count('accepted', deliveries_made)
  count('pending', deliveries_made)
end
count('bytes', bytes)
local bell = finish()
forget_old_names()
return { bell, answers }
