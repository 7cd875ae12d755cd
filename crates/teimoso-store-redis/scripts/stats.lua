-- The counters and what is asked beside them, of one instant: what moves between ours and the public keys is in exactly
-- one of them. Writes nothing.
--
-- Answers  the counters by name, the score of the lane that is overdue longest, lanes, entries that are ready, that
--          wait, that are dead, that are being adopted

local taken = call('HLEN', TAKEN)
for _, owner in ipairs(call('ZRANGE', STAGED, 0, -1)) do taken = taken + call('LLEN', P .. 'staged:' .. owner) end

return { call('HGETALL', COUNTS), call('ZRANGE', HEADS, 0, 0, 'WITHSCORES'), call('HLEN', LANE_IDS),
  call('LLEN', READY), call('ZCARD', WAITING), call('LLEN', BURIED), taken }
