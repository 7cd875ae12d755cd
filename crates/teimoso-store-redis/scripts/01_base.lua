-- What every script begins with: names of keys, the time, the records, and the counters. Nothing is written
-- before `finish`, except what a script removes first: at `maxmemory` Redis lets a script add only after a
-- write that frees memory.
--
-- KEYS[1]  the shard's `meta` hash; every other key of the shard has its tag
-- KEYS[2]  in a Cluster, a key that never exists: the server refuses the script while their slot moves
-- ARGV[1]  the caller's wall clock in ms
-- ARGV[2]  'redis' (TIME decides) or 'caller' (tests only)
-- ARGV[3]  bounds: "slots per lane, one slot in so many kept from first attempts, from later ones,
--          most lanes by URL, most lanes, history rows, history ms, names ms"

local P = string.sub(KEYS[1], 1, -5)
local call, pack, unpk, floor = redis.call, struct.pack, struct.unpack, math.floor
local META, COUNTS, BELL = KEYS[1], P .. 'counts', P .. 'bell'
local EVENTS, DELIVERIES, ATTEMPTS = P .. 'events', P .. 'deliveries', P .. 'attempts'
local LEASES, TIMERS, HEADS = P .. 'leases', P .. 'timers', P .. 'heads'
local LANES, LANE_IDS, LANE_NAMES = P .. 'lanes', P .. 'lane_ids', P .. 'lane_names'
local TURNS, SHARED, JOBS, JOBS_DUE = P .. 'turns', P .. 'shared', P .. 'jobs', P .. 'jobs_due'
local EVENT_ORDER, BARE = P .. 'order:events', P .. 'order:bare'

-- The three keys of anybody: the tag is the first one's name.
local READY = string.sub(P, 2, -3)
local WAITING = string.sub(READY, 1, -8) .. 'espera'
local BURIED = string.sub(READY, 1, -8) .. 'mortos'
-- In a Cluster the last two are in other slots: what waits is kept in this one, and what died until it was copied.
if KEYS[2] then WAITING, BURIED = P .. 'espera', P .. 'mortos' end
-- Entries taken from them and not yet adopted: token to bytes, and when each is anybody's again.
local TAKEN, TAKEN_UNTIL = P .. 'taken', P .. 'taken_until'
-- Processes that block on the ready list, and until when each is believed to live; their lists hold what they took.
local STAGED = P .. 'staged'

-- States, reasons and the like: the tags of the model, which are law.
local PENDING, IN_FLIGHT, SCHEDULED, DELIVERED, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5
local STATE_NAMES = { [0] = 'pending', 'in_flight', 'scheduled', 'delivered', 'dead', 'cancelled' }
local AT_MOST_ONCE, WHY_REPLAY = 1, 7
-- Flags of a delivery: a cancellation was wished; it came in through the ready list and goes back to the public keys.
local WISHED_CANCEL, ADOPTED = 1, 2
local function has(flags, flag) return floor(flags / flag) % 2 == 1 end
local REASON_AMBIGUOUS, REASON_POISON, MAX_RECOVERIES = 4, 11, 3
local NO_NONCE = string.rep('\0', 16)

local CAP, FIRST_PART, MORE_PART, MAX_URL_LANES, MAX_LANES, HISTORY_ROWS, HISTORY_MS, NAMES_MS
do
  local n = {}
  for number in string.gmatch(ARGV[3], '%d+') do n[#n + 1] = tonumber(number) end
  CAP, FIRST_PART, MORE_PART, MAX_URL_LANES, MAX_LANES, HISTORY_ROWS, HISTORY_MS, NAMES_MS =
    n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]
end

-- Longest list of arguments for one command: `unpack` fails at 8000.
local CHUNK = 500

local function each_chunk(list, width, run)
  local step = CHUNK - CHUNK % width
  for from = 1, #list, step do
    run(unpack(list, from, math.min(from + step - 1, #list)))
  end
end

-- ---- time

local caller_now = tonumber(ARGV[1])
local now, clock_is_ours, last_run = caller_now, ARGV[2] == 'caller', nil
local rebased = 0 -- how far ahead a stored time was that is no longer believed
if not clock_is_ours then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
  last_run = tonumber(call('HGET', META, 'now') or '')
  if last_run and last_run > now then
    -- A failover to a slower clock does not go back in time, but a broken clock is not believed for ever.
    if last_run - now <= 60000 then now = last_run else rebased = last_run - now end
  end
end
local shift = now - caller_now

-- An instant of the caller's clock on ours. Delays are kept, skew is not.
local function ours(at) return at + shift end

-- ---- deliveries

-- version, state, reason, mode, why, recoveries, flags, attempts, budget_from, due, first attempt, finished,
-- lane, nonce, event
local DELIVERY = '>BBBBBBBI4I4I8I8I8I4c16c15'
local deliveries, touched = {}, {}

local function parse_delivery(key, raw)
  local d = { key = key }
  local version
  version, d.state, d.reason, d.mode, d.why, d.recoveries, d.flags, d.attempts, d.budget_from, d.due, d.first,
    d.finished, d.lane, d.nonce, d.event = unpk(DELIVERY, raw)
  d.was = d.state
  deliveries[key] = d
  return d
end

local function delivery(key)
  local d = deliveries[key]
  if d then return d end
  local raw = call('HGET', DELIVERIES, key)
  if not raw then return nil end
  return parse_delivery(key, raw)
end

local function print_delivery(d)
  return pack(DELIVERY, 1, d.state, d.reason, d.mode, d.why, d.recoveries, d.flags, d.attempts, d.budget_from,
    d.due, d.first, d.finished, d.lane, d.nonce, d.event)
end

local function touch(d)
  if not d.touched then
    d.touched = true
    touched[#touched + 1] = d
  end
end

-- The order a state is listed in: one for all that is alive, one for each end.
local function order_of(state)
  if state <= SCHEDULED then return P .. 'order:alive' end
  return P .. 'order:' .. STATE_NAMES[state]
end

-- ---- counters

local counted = {}
local function count(name, by) counted[name] = (counted[name] or 0) + by end

local function go(d, state)
  count(STATE_NAMES[d.state], -1)
  count(STATE_NAMES[state], 1)
  d.state = state
  touch(d)
end

-- ---- keys: ms × 4096 + counter as 15 hexadecimal digits, so that text order is their order

local key_ms, key_counter
local function next_key()
  if not key_ms then
    key_ms, key_counter = 0, 0
    local last = call('HGET', META, 'last_key')
    if last then
      key_ms, key_counter = tonumber(string.sub(last, 1, 12), 16), tonumber(string.sub(last, 13), 16)
    end
  end
  if now > key_ms then
    key_ms, key_counter = now, 0
  elseif key_counter < 4095 then
    key_counter = key_counter + 1
  else
    key_ms, key_counter = key_ms + 1, 0
  end
  return string.format('%012x%03x', key_ms, key_counter)
end

-- The key after this one, for the deliveries of an event.
local function key_after(key)
  local ms, counter = tonumber(string.sub(key, 1, 12), 16), tonumber(string.sub(key, 13), 16)
  if counter < 4095 then return string.format('%012x%03x', ms, counter + 1) end
  return string.format('%012x%03x', ms + 1, 0)
end
