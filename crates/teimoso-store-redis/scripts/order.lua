-- A person's orders on one delivery.
--
-- ARGV[4..5]  'cancel', 'retry' or 'replay' (a retry of a delivered one, too), and the delivery's key
-- Answers     {bell, outcome, state}: outcome 0 done, 1 wished, 2 refused in this state, 3 unknown

local DONE, WISHED, REFUSED, UNKNOWN, DELIVER_AT = 0, 1, 2, 3, 8

call('HDEL', META, '-')

local function cancel(d)
  if d.state == IN_FLIGHT then
    if d.flags % 2 ~= WISHED_CANCEL then d.flags = d.flags + WISHED_CANCEL end
    touch(d)
    return WISHED
  end
  if d.state > SCHEDULED then return REFUSED end
  local l = lane_of(d.lane)
  if d.fresh and d.why ~= DELIVER_AT then
    -- Its entry stays in the lane's list until its turn.
    ghosts[#ghosts + 1] = d.key .. pack('>I8', d.due)
    ghosts[#ghosts + 1] = 1
  elseif l then
    remove(l, d.key)
  end
  d.finished = now
  go(d, CANCELLED)
  return DONE
end

local function retry(d, explicit)
  local allowed = d.state == SCHEDULED or d.state == DEAD or d.state == CANCELLED
    or (explicit and d.state == DELIVERED)
  if not allowed then return REFUSED end
  renew(d)
  ring_bell = true
  return DONE
end

local d = delivery(ARGV[5]) or fresh_delivery(ARGV[5])
local outcome, state = UNKNOWN, 0
if d then
  state = d.state
  if ARGV[4] == 'cancel' then outcome = cancel(d) else outcome = retry(d, ARGV[4] == 'replay') end
end
return { finish(), outcome, state }
