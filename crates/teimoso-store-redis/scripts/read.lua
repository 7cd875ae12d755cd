-- Views for the API: what is asked for in one step, payloads left out. Writes nothing.
--
-- ARGV[4]     'deliveries': [5..] keys of deliveries
--             'events': [5..] keys of events
--             'named': [5] a caller's id
-- A delivery  {key, its record, its event's record without payload, payload bytes, its last attempt's record,
--             why its lane is paused (0: not), until when}
-- An event    {key, its record without payload, payload bytes, its delivery or nothing}

local HEAD_AT = 6

-- The record begins with its version and the length of its head.
local function head_of(key)
  local raw = call('HGET', EVENTS, key)
  if not raw then return nil end
  local _, length = unpk('>BI4', raw)
  return string.sub(raw, 1, HEAD_AT - 1 + length), #raw - (HEAD_AT - 1) - length
end

local function view_delivery(key)
  local d = delivery(key)
  local record = d and call('HGET', DELIVERIES, key)
  if not record then return nil end
  local event, size = head_of(d.event)
  if not event then return nil end
  local attempt = d.attempts > 0 and call('HGET', ATTEMPTS, key .. ':' .. string.format('%d', d.attempts))
  local l = lane_of(d.lane)
  return { key, record, event, size, attempt or '', l and l.why or 0, l and l.not_before or 0 }
end

local function view_event(key)
  local event, size = head_of(key)
  if not event then return nil end
  local first = key_after(key)
  local d = delivery(first)
  local own = d and d.event == key and view_delivery(first)
  return { key, event, size, own or false }
end

local function views(view)
  local found = {}
  for index = 5, #ARGV do
    local one = view(ARGV[index])
    if one then found[#found + 1] = one end
  end
  return found
end

if ARGV[4] == 'deliveries' then return views(view_delivery) end
if ARGV[4] == 'events' then return views(view_event) end
local known = call('HGET', P .. 'ids', ARGV[5])
if not known then return {} end
local key, until_ms = unpk('>c15I8', known)
if until_ms <= now then return {} end
local one = view_event(key)
return one and { one } or {}
