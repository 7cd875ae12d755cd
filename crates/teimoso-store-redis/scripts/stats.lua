-- The counters and what is asked beside them, of one instant: what moves between ours and the public keys is in exactly
-- one of them. Writes nothing.
--
-- Answers  the counters by name, the score of the lane that is overdue longest, lanes, entries that are ready, that
--          wait, that are dead, that are being adopted

return { call('HGETALL', COUNTS), call('ZRANGE', HEADS, 0, 0, 'WITHSCORES'), call('HLEN', LANE_IDS),
  call('LLEN', READY), call('ZCARD', WAITING), call('LLEN', BURIED), call('HLEN', TAKEN) }
