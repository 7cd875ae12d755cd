-- The one look per second of a process that waits: whether something is there that no push announced. It writes one
-- thing, now and then: that Redis was here, so that a fleet with nothing to do is not taken for an outage when a lease
-- ends. After a real one, the gap is left for the next cycle to find.
--
-- Answers  the bell, whether the public keys have something (1 or 0), whether a lane has, the salt of the ids

local function head_is_due(order)
  return tonumber(call('ZRANGE', order, 0, 0, 'WITHSCORES')[2] or math.huge) <= now
end

local NOTED_EVERY_MS, OUTAGE_MS = 5000, 15000
if last_run and now - last_run > NOTED_EVERY_MS and now - last_run <= OUTAGE_MS then
  -- Frees nothing, and lets the write through when memory is full.
  call('HDEL', META, '-')
  call('HSET', META, 'now', string.format('%d', now))
end

local ingress = call('LLEN', ANYBODY .. 'prontos') > 0 or head_is_due(WAITING)
  or head_is_due(P .. 'taken_until')
local due = call('LLEN', P .. 'turns') > 0 or head_is_due(P .. 'timers')
  or (grace <= now and head_is_due(P .. 'leases'))
  or head_is_due(P .. 'jobs_due')
return { tonumber(call('GET', P .. 'bell') or '0'), ingress and 1 or 0, due and 1 or 0, call('HGET', META, 'salt') }
