-- Views for the API: what is asked for in one step, payloads left out. Writes nothing.
--
-- ARGV[4]     'deliveries': [5..] keys of deliveries
--             'events': [5..] keys of events
--             'named': [5] a caller's id
--             'order': [5] rows at most, [6] before which key (empty: from the last), [7] from which key on: keys in the
--             order of events, last first
-- A delivery  {key, its record, its event's record without payload, payload bytes, why its lane is paused (0: not),
--             until when}
-- An event    {key, its record without payload, payload bytes, its delivery or nothing}

-- The record begins with what its delivery needs, then the length of its head.
local function head_of(key)
  local raw = call('HGET', EVENTS, key)
  if not raw then return nil end
  local length = EVENT_BYTES + 4 + unpk('>I4', raw, EVENT_BYTES + 1)
  return sub(raw, 1, length), #raw - length
end

local function view_delivery(key)
  local event, bytes = head_of(key)
  local d = event and (delivery(key) or fresh_delivery(key))
  if not d then return nil end
  local l = lane_of(d.lane)
  local h = l and l.health
  return { key, print_delivery(d), event, bytes, h and h.why or 0, h and h.not_before or 0 }
end

local function view_event(key)
  local event, bytes = head_of(key)
  return event and { key, event, bytes, view_delivery(key) or false }
end

local function views(view)
  local found = {}
  for index = 5, #ARGV do
    local one = view(ARGV[index])
    if one then found[#found + 1] = one end
  end
  return found
end

-- The first place in the list whose key is not below this one; the list is in order.
local function place_of(key)
  local low, high = 0, call('LLEN', EVENT_ORDER)
  while low < high do
    local middle = floor((low + high) / 2)
    if call('LINDEX', EVENT_ORDER, middle) < key then low = middle + 1 else high = middle end
  end
  return low
end

local function order()
  local most, before, from = tonumber(ARGV[5]), ARGV[6], ARGV[7]
  local last = (before == '' and call('LLEN', EVENT_ORDER) or place_of(before)) - 1
  local listed = last < 0 and {} or call('LRANGE', EVENT_ORDER, max(last - most + 1, 0), last)
  local old = call('ZREVRANGEBYLEX', EVENT_ORDER_OLD, before == '' and '+' or '(' .. before, '[' .. from, 'LIMIT', 0,
    most)
  local found, at, beside = {}, #listed, 1
  while #found < most do
    local a, b = listed[at], old[beside]
    if a and a < from then a = nil end
    if not a and not b then break end
    if not b or (a and a > b) then
      found[#found + 1], at = a, at - 1
    else
      found[#found + 1], beside = b, beside + 1
    end
  end
  return found
end

if ARGV[4] == 'deliveries' then return views(view_delivery) end
if ARGV[4] == 'events' then return views(view_event) end
if ARGV[4] == 'order' then return order() end
local known = call('HGET', P .. 'ids', ARGV[5])
if not known then return {} end
local key, until_ms = unpk('>c15I8', known)
if until_ms <= now then return {} end
local one = view_event(key)
return one and { one } or {}
