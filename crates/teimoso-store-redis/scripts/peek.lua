-- The one look per second of a process that waits: whether something is there that no push announced. Writes nothing.
--
-- Answers  the bell, whether the public keys have something (1 or 0), whether a lane has, the salt of the ids

local function head_is_due(order)
  return tonumber(call('ZRANGE', order, 0, 0, 'WITHSCORES')[2] or math.huge) <= now
end

local ingress = call('LLEN', READY) > 0 or head_is_due(WAITING) or head_is_due(TAKEN_UNTIL)
local due = call('LLEN', TURNS) > 0 or head_is_due(TIMERS) or head_is_due(LEASES) or head_is_due(JOBS_DUE)
return { tonumber(call('GET', BELL) or '0'), ingress and 1 or 0, due and 1 or 0, call('HGET', META, 'salt') }
