-- What every script begins with: names of keys, the time, and the counters. Nothing is written before `finish`, except
-- what a script removes first: at `maxmemory` Redis lets a script add only after a write that frees memory.
--
-- Every call of a script makes its functions anew, and each looks its variables up one by one: few functions, and few
-- variables that they share, are a good part of what a small batch costs. Numbers that do not change are given to Redis
-- as texts: to print one takes longer than many a command.
--
-- KEYS[1]  the shard's `meta` hash; every other key of the shard has its tag
-- KEYS[2]  in a Cluster, a key that never exists: the server refuses the script while their slot moves
-- ARGV[1]  the caller's wall clock in ms
-- ARGV[2]  'redis' (TIME decides) or 'caller' (tests only)
-- ARGV[3]  bounds, packed: slots per lane, one slot in so many kept from first attempts, from later ones,
--          most lanes by URL, most lanes, history rows, history ms, names ms

local P = string.sub(KEYS[1], 1, -5)
local call, pack, unpk, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local floor, min, max, unpack = math.floor, math.min, math.max, unpack
local META, EVENTS, DELIVERIES, ATTEMPTS = KEYS[1], P .. 'events', P .. 'deliveries', P .. 'attempts'
-- What the three keys of anybody begin with.
local ANYBODY = sub(P, 2, -10)
local WAITING, BURIED = ANYBODY .. 'espera', ANYBODY .. 'mortos'
-- In a Cluster these two are in other slots: what waits is kept in this one, and what died until it was copied.
if KEYS[2] then WAITING, BURIED = P .. 'espera', P .. 'mortos' end
-- Fresh entries of lanes, and rows of the history, that are to be passed over when their turn comes.
local GHOSTS = P .. 'ghosts'
-- Every event's key in order: in a list, or, where that cannot be, in a set beside it. A list may name what is gone.
local EVENT_ORDER, EVENT_ORDER_OLD = P .. 'order:events', P .. 'order:old'

-- States, reasons and the like: the tags of the model, which are law.
local PENDING, IN_FLIGHT, SCHEDULED, DELIVERED, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5
local STATE_NAMES = { [0] = 'pending', 'in_flight', 'scheduled', 'delivered', 'dead', 'cancelled' }
local AT_MOST_ONCE = 1
-- Flags of a delivery: a cancellation was wished; it came in through the ready list and goes back to the public keys;
-- its lease was renewed and is its own, no longer its claim's.
local WISHED_CANCEL, ADOPTED, RENEWED = 1, 2, 4

local CAP, FIRST_PART, MORE_PART, MAX_URL_LANES, MAX_LANES, HISTORY_ROWS, HISTORY_MS, NAMES_MS =
  unpk('>I4I4I4I4I4I8I8I8', ARGV[3])

-- Longest list of arguments for one command: `unpack` fails at 8000. Even, so that it cuts no pair.
local CHUNK = 500

-- One command for a whole list, or as few as may be.
local function write(command, key, list)
  local length = #list
  for from = 1, length, CHUNK do call(command, key, unpack(list, from, min(from + CHUNK - 1, length))) end
end

local function fetch(key, fields)
  local length = #fields
  if length == 0 then return {} end
  local found = call('HMGET', key, unpack(fields, 1, min(CHUNK, length)))
  for from = CHUNK + 1, length, CHUNK do
    local more = call('HMGET', key, unpack(fields, from, min(from + CHUNK - 1, length)))
    for index = 1, #more do found[from + index - 1] = more[index] end
  end
  return found
end

-- Adds to a key of anybody; whether it could be: the key may be of another type, or not ours to write.
local function add_in_public(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  return type(answer) ~= 'table' or not answer.err
end

-- ---- time

local caller_now = tonumber(ARGV[1])
local now, clock_is_ours, last_run = caller_now, ARGV[2] == 'caller', nil
local rebased = 0 -- how far ahead a stored time was that is no longer believed
local kept = call('HMGET', META, 'now', 'grace', 'last_key')
local grace, last_key = tonumber(kept[2] or '0'), kept[3]
if not clock_is_ours then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
  last_run = tonumber(kept[1] or '')
  if last_run and last_run > now then
    -- A failover to a slower clock does not go back in time, but a broken clock is not believed for ever.
    if last_run - now <= 60000 then now = last_run else rebased = last_run - now end
  end
end
local now_text = string.format('%d', now)
-- When no script ran for half a lease, Redis was away, and whichever script is the first says so: workers that live get
-- a lease of time to say that they do before anybody takes what they hold. A grace given by a clock that went back
-- since is none.
local OUTAGE_MS = 15000
local was_away = last_run and now - last_run > OUTAGE_MS
if was_away then grace = now + 2 * OUTAGE_MS elseif grace > now + 2 * OUTAGE_MS then grace = 0 end
-- An instant of the caller's clock is ours plus this. Delays are kept, skew is not.
local shift = now - caller_now

-- ---- counters

local counted = {}
local function count(name, by) counted[name] = (counted[name] or 0) + by end

-- ---- keys: ms × 4096 + counter as 15 hexadecimal digits, so that text order is their order. An event's is even; its
-- delivery's, which only ids tell apart, is the one after it. Both are kept under the event's.

local key_ms, key_counter, key_text
local function next_key()
  if not key_ms then
    key_ms, key_counter = 0, 0
    if last_key then key_ms, key_counter = tonumber(sub(last_key, 1, 12), 16), tonumber(sub(last_key, 13), 16) end
  end
  if now > key_ms then
    key_ms, key_counter, key_text = now, 0, nil
  elseif key_counter < 4094 then
    key_counter = key_counter - key_counter % 2 + 2
  else
    key_ms, key_counter, key_text = key_ms + 1, 0, nil
  end
  key_text = key_text or string.format('%012x', key_ms)
  return key_text .. string.format('%03x', key_counter)
end
