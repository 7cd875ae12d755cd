-- What the caller made of the entries it took: events with a delivery each, or dead letters. An entry whose lease is
-- gone is somebody else's.
--
-- ARGV[4]  entries; per entry its token and
--          'event', lane, origin, the event's record, attempts, budget from, first attempt, why due, the event's key
--          of an earlier stay (may be empty); or
--          'dead', the text for the dead letters, and seven that are empty
-- Answers  the bell

call('HDEL', META, '-')

local records, order = {}, {}

-- The key it had before, unless somebody else has it: then a new one.
local function key_for(earlier)
  if string.match(earlier, '^%x+$') and #earlier == 15 then
    earlier = string.lower(earlier)
    local last = call('HGET', META, 'last_key') or ''
    local free = call('HEXISTS', EVENTS, earlier) == 0 and call('HEXISTS', DELIVERIES, key_after(earlier)) == 0
    if free and earlier < last and not deliveries[key_after(earlier)] then return earlier, key_after(earlier) end
  end
  return next_key(), next_key()
end

local function lane_for(lane, origin)
  local name = 'default\n' .. lane
  local id = call('HGET', LANE_IDS, name)
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
  id = call('HINCRBY', META, 'last_lane', 1)
  call('HSET', LANE_IDS, name, id)
  call('HSET', LANE_NAMES, id, name)
  return new_lane(id, 'default')
end

local function adopt(lane, origin, record, attempts, budget_from, first, why, earlier)
  local event_key, key = key_for(earlier)
  local l = lane_for(lane, origin)
  local d = { key = key, state = attempts == 0 and PENDING or SCHEDULED, reason = 0, mode = 0, why = why,
    recoveries = 0, flags = ADOPTED, attempts = attempts, budget_from = budget_from, due = now, first = first,
    finished = 0, lane = l.id, nonce = NO_NONCE, event = event_key }
  deliveries[key] = d
  touch(d)
  count('accepted', 1)
  count(STATE_NAMES[d.state], 1)
  count('bytes', #record)
  l.kept = l.kept + 1
  records[#records + 1] = event_key
  records[#records + 1] = record
  order[#order + 1] = 0
  order[#order + 1] = event_key
  push(l, now, key)
  ring_bell = true
end

local arg = 5
for _ = 1, tonumber(ARGV[4]) do
  local token, what = ARGV[arg], ARGV[arg + 1]
  if call('HDEL', TAKEN, token) == 1 then
    call('ZREM', TAKEN_UNTIL, token)
    if what == 'event' then
      adopt(ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4], tonumber(ARGV[arg + 5]), tonumber(ARGV[arg + 6]),
        tonumber(ARGV[arg + 7]), tonumber(ARGV[arg + 8]), ARGV[arg + 9])
    else
      call('RPUSH', BURIED, ARGV[arg + 2])
    end
  end
  arg = arg + 10
end
each_chunk(records, 2, function(...) call('HSET', EVENTS, ...) end)
each_chunk(order, 2, function(...) call('ZADD', EVENT_ORDER, ...) end)
return finish()
