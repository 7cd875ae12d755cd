-- The one look per second of a process that waits: whether something is there that no push announced; and the seats of
-- those that are told of pushes. It writes little else: now and then that Redis was here, so that a fleet with nothing
-- to do is not taken for an outage when a lease ends. After a real one, the gap is left for the next cycle to find.
--
-- ARGV[4..7]  'sit': take a seat, or keep it; 'leave': give it up; 'look': neither
--             who asks, how many seats there are, how long one is kept by somebody who is not heard of, in ms
-- Answers     the bell, whether the public keys have something (1 or 0), whether a lane has, the salt of the ids, the
--             seat (-1: none)

local function head_is_due(order)
  return tonumber(call('ZRANGE', order, 0, 0, 'WITHSCORES')[2] or math.huge) <= now
end

local NOTED_EVERY_MS = 5000
local what, who, seats, lasts_ms = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]

-- The first seats are told first, so whoever sits moves up. A seat is a key that ends by itself: everybody else sees by
-- one plain command whether one is free.
local function sit()
  local free = nil
  for seat = 0, seats - 1 do
    local key = P .. 'seat:' .. string.format('%d', seat)
    local holder = call('GET', key)
    if holder == who then
      if what == 'sit' and not free then
        call('PEXPIRE', key, lasts_ms)
        return seat
      end
      call('DEL', key)
      break
    end
    if not holder and not free then free = seat end
  end
  if what == 'leave' or not free then return -1 end
  call('SET', P .. 'seat:' .. string.format('%d', free), who, 'PX', lasts_ms)
  return free
end

-- Frees nothing, and lets the writes through when memory is full.
call('HDEL', META, '-')
if last_run and now - last_run > NOTED_EVERY_MS and not was_away then
  call('HSET', META, 'now', string.format('%d', now))
end

local seat = what == 'look' and -1 or sit()
local ingress = call('LLEN', ANYBODY .. 'prontos') > 0 or head_is_due(WAITING)
  or head_is_due(P .. 'taken_until')
local due = call('LLEN', P .. 'turns') > 0 or head_is_due(P .. 'timers')
  or (grace <= now and head_is_due(P .. 'leases'))
  or head_is_due(P .. 'jobs_due')
return { tonumber(call('GET', P .. 'bell') or '0'), ingress and 1 or 0, due and 1 or 0, call('HGET', META, 'salt'), seat }
