-- What the caller made of the entries it took: events with a delivery each, or dead letters. An entry whose lease is
-- gone is somebody else's.
--
-- ARGV[4]  entries; per entry its token, or 'w' or 'm' and its bytes when it is taken from what waits or is dead, and
--          'event' or 'cancelled', lane, origin, the event's record, attempts, budget from, first attempt, why due, the
--          event's key of an earlier stay (may be empty); or
--          'dead', the text for the dead letters, and seven that are empty
-- Answers  the bell, and how many were still there

call('HDEL', META, '-')

local TAKEN, TAKEN_UNTIL = P .. 'taken', P .. 'taken_until'
local records, order, order_old, adopted_here, lane_ids, leases_over = {}, {}, {}, {}, {}, {}

-- The key it had before, unless somebody else has it: then a new one.
local function key_for(earlier)
  if #earlier == 15 and string.match(earlier, '^%x+[02468aceACE]$') then
    earlier = string.lower(earlier)
    local free = not adopted_here[earlier] and call('HEXISTS', EVENTS, earlier) == 0
    if free and earlier <= (last_key or string.format('%012x', now)) then
      order_old[#order_old + 1] = 0
      order_old[#order_old + 1] = earlier
      return earlier
    end
  end
  local key = next_key()
  order[#order + 1] = key
  return key
end

local function lane_for(lane, origin)
  local name = 'default\n' .. lane
  if lane_ids[name] then return lane_of(lane_ids[name]) end
  local id = call('HGET', LANE_IDS, name)
  lane_ids[name] = id
  local known = not id and call('HLEN', LANE_IDS)
  if known and known >= MAX_URL_LANES then
    name = 'default\n' .. origin
    id = call('HGET', LANE_IDS, name)
  end
  -- Past the most there may be, one lane takes the rest: what was taken from a public key must go somewhere.
  if not id and known >= MAX_LANES then
    name = 'default\n'
    id = call('HGET', LANE_IDS, name)
  end
  if id then return lane_of(id) end
  local l = new_lane(call('HINCRBY', META, 'last_lane', '1'), 'default')
  call('HSET', LANE_IDS, name, l.id)
  call('HSET', LANE_NAMES, l.id, name)
  return l
end

-- Whoever takes an entry away from where it is has it.
local function take_away(from)
  local place = sub(from, 1, 1)
  if place == 'w' then return call('ZREM', WAITING, sub(from, 2)) == 1 end
  if place == 'm' then return call('LREM', BURIED, '1', sub(from, 2)) == 1 end
  if call('HDEL', TAKEN, from) == 0 then return false end
  leases_over[#leases_over + 1] = from
  return true
end

local function adopt(what, lane, origin, record, attempts, budget_from, first, why, earlier)
  local key, l = key_for(earlier), lane_for(lane, origin)
  adopted_here[key] = true
  record = pack(EVENT, 2, 0, why, 0, ADOPTED, budget_from, now, l.id) .. record
  records[#records + 1] = key
  records[#records + 1] = record
  l.kept = l.kept + 1
  count('accepted', 1)
  count('bytes', #record)
  if what == 'event' then ring_bell = true end
  if attempts == 0 and what == 'event' then
    count('pending', 1)
    enqueue(l, key .. pack('>I8', now))
    say_due(l, now)
    return place(l)
  end
  local d = { key = key, state = SCHEDULED, reason = 0, mode = 0, why = why, recoveries = 0, flags = ADOPTED,
    budget_from = budget_from, due = now, first = first, attempts = attempts, finished = 0, bytes = #record,
    lane = l.id, nonce = NO_NONCE, last = '' }
  deliveries[key] = d
  touch(d)
  if what == 'event' then
    count('scheduled', 1)
    return push(l, now, key)
  end
  d.state, d.finished = CANCELLED, now
  count('cancelled', 1)
end

local arg, taken_away = 5, 0

-- Added first: what the dead letters do not take stays where it is, to be looked at again.
local function bury(from, text)
  local waits = sub(from, 1, 1) == 'w'
  local is_there = waits and call('ZSCORE', WAITING, sub(from, 2)) or not waits and call('HEXISTS', TAKEN, from) == 1
  if is_there and add_in_public('RPUSH', BURIED, text) and take_away(from) then taken_away = taken_away + 1 end
end

for _ = 1, tonumber(ARGV[4]) do
  local what = ARGV[arg + 1]
  if what == 'dead' then
    bury(ARGV[arg], ARGV[arg + 2])
  elseif take_away(ARGV[arg]) then
    taken_away = taken_away + 1
    adopt(what, ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4], tonumber(ARGV[arg + 5]), tonumber(ARGV[arg + 6]),
      tonumber(ARGV[arg + 7]), tonumber(ARGV[arg + 8]), ARGV[arg + 9])
  end
  arg = arg + 10
end
write('ZREM', TAKEN_UNTIL, leases_over)
write('HSET', EVENTS, records)
write('RPUSH', EVENT_ORDER, order)
write('ZADD', EVENT_ORDER_OLD, order_old)
return { finish(), taken_away }
