-- One round trip of a worker: settle, extend, recover, replay, take, claim. Removes first, adds second.
--
-- ARGV[4..9]   settlements, renewals, deliveries wanted (-1: no claim), free slots, slots held by this process,
--              lease in ms
-- ARGV[10..12] the claim's nonce (16 bytes), when its leases end (the caller's clock), lanes that are settled
-- then         those lanes; the settled deliveries' keys; per settlement nonce, what is next, news of the lane, when,
--              and the rest as that says; the renewed deliveries' keys; per renewal nonce, until when
--
-- This part settles and extends.

-- A write that frees memory, even when there is nothing to free, lets the rest of the script add at `maxmemory`.
call('HDEL', META, '-')

local settlements, renewals, want = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local free, held, lease_ms = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local nonce, lease_until = ARGV[10], tonumber(ARGV[11]) + shift
local lost = {}
will_claim = want >= 0

local function settle_and_extend()
  -- What is next: as in `rest`; or delivered, with the record that says so, as the caller made it. That is the only
  -- settlement of its delivery in this call.
  local QUICK = 4
  local FIXED, FIXED_BYTES = '>BBBBBI4I4I8I8I8I4', 26 + 5 + 2 * 4 + 3 * 8 + 4
  local arg = 13 + tonumber(ARGV[12])

  local function read_ahead(from, to)
    if to < from then return end
    local found = call('HMGET', DELIVERIES, unpack(ARGV, from, to))
    for index = from, to do raws[ARGV[index]] = found[index - from + 1] end
  end

  -- Events that came in through the ready list wait and die where everybody can see them (S2.1).
  local function settle_in_public(d, next, due, text)
    if text == '' or d.flags % 4 ~= ADOPTED or (next ~= NEXT_SCHEDULED and next ~= NEXT_DEAD) then return false end
    -- Added first: what a public key does not take stays with us.
    local added
    if next == NEXT_SCHEDULED then
      added = add_in_public('ZADD', WAITING, due, text)
    else
      added = add_in_public('RPUSH', BURIED, text)
    end
    if not added then return false end
    remove_records(d)
    count('accepted', -1)
    return true
  end

  local function settle(key, body)
    local d = delivery(key)
    if not d or d.state ~= IN_FLIGHT or d.nonce ~= sub(body, 1, 16) then return end
    local next, news, at = unpk('>BBI8', body, 17)
    local reason, next_why, mode, why, recoveries, tried, budget_from, first, due, pause_until, length =
      unpk(FIXED, body, 27)
    local record = sub(body, FIXED_BYTES + 1, FIXED_BYTES + length)
    end_lease(d)
    local l = lane_of(d.lane)
    if l then
      l.answers = next == NEXT_DELIVERED and 1 or 0
      release(l, news, pause_until + shift, at + shift)
    end
    d.mode, d.why, d.recoveries, d.attempts, d.budget_from, d.first = mode, why, recoveries, tried, budget_from, first
    if settle_in_public(d, next, due + shift, sub(body, FIXED_BYTES + length + 1)) then return end
    if record ~= '' then
      if d.last ~= '' then
        attempts[#attempts + 1] = key .. ':' .. unpk('>I4', d.last, 4)
        attempts[#attempts + 1] = d.last
      end
      d.last = record
    end
    rest(d, next, reason, due + shift, next_why, at + shift)
  end

  -- What most attempts come to, without taking any record apart.
  local delivered = 0
  local function settle_delivered(key, body, raw)
    if not raw then return end
    local state, _, _, _, _, flags = byte(raw, 2, 7)
    local by = sub(body, 1, 16)
    if state ~= IN_FLIGHT or sub(raw, 52, 67) ~= by then return end
    leases_ended[by] = (leases_ended[by] or 0) + 1
    if flags >= RENEWED then leases_gone[#leases_gone + 1] = key end
    if sub(raw, 28, 31) ~= '\0\0\0\0' then
      tried_gone[#tried_gone + 1] = key
      if #raw >= LAST_AT then
        attempts[#attempts + 1] = key .. ':' .. unpk('>I4', raw, LAST_AT + 3)
        attempts[#attempts + 1] = sub(raw, LAST_AT)
      end
    end
    local record = sub(body, 27)
    local at = #written
    written[at + 1] = key
    written[at + 2] = record
    history[#history + 1] = key .. sub(record, 28, 43)
    delivered = delivered + 1
    local l = lane_of(sub(raw, 44, 51))
    if not l then return end
    l.answers, l.kept = 1, max(l.kept - 1, 0)
    release(l, byte(body, 18), 0, l.health and unpk('>I8', body, 19) + shift or 0)
  end

  local extended = {}

  local function renew_lease(index, key, body)
    local d, by, until_ms = delivery(key), unpk('>c16I8', body)
    if not d or d.state ~= IN_FLIGHT or d.nonce ~= by then
      lost[#lost + 1] = index - 1
      return
    end
    extended[#extended + 1] = until_ms + shift
    extended[#extended + 1] = key
    if d.flags < RENEWED then
      d.flags = d.flags + RENEWED
      touch(d)
    end
  end

  if arg > 13 then load_lanes({ unpack(ARGV, 13, arg - 1) }) end
  local found = settlements > 0 and call('HMGET', DELIVERIES, unpack(ARGV, arg, arg + settlements - 1))
  for index = 1, settlements do
    local key, body = ARGV[arg + index - 1], ARGV[arg + index - 1 + settlements]
    if byte(body, 17) == QUICK then
      settle_delivered(key, body, found[index])
    else
      if raws[key] == nil then raws[key] = found[index] end
      settle(key, body)
    end
  end
  if delivered > 0 then
    count('in_flight', -delivered)
    count('delivered', delivered)
    -- Before anybody reads them again.
    write('HSET', DELIVERIES, written)
    written = {}
  end
  arg = arg + 2 * settlements
  read_ahead(arg, arg + renewals - 1)
  for index = 1, renewals do renew_lease(index, ARGV[arg + index - 1], ARGV[arg + renewals + index - 1]) end
  write('ZADD', P .. 'leases', extended)
end

if settlements + renewals > 0 then settle_and_extend() end
