-- The counters and what is asked beside them, of one instant: what moves between ours and the public keys is in exactly
-- one of them. Writes only what it finds out about who is overdue longest.
--
-- Answers  the counters by name, the score of the lane that is overdue longest, lanes, entries that are ready, that
--          wait, that are dead, that are being adopted

-- Lanes whose word is checked at most; past them the answer may name a time that is over.
local MOST_CHECKED = 500

-- When the first of a lane is due; nil when nothing waits in it.
local function first_due(l)
  local entry = l.front ~= '' and l.front or l.fresh > 0 and call('LINDEX', fresh_of(l), 0)
  local due = entry and unpk('>I8', entry, 16)
  return due and l.later and min(due, l.later) or due or l.later
end

-- Lanes say a time before which nothing of theirs is due; here their word is made true, from the earliest on. A pause
-- is counted in: what it holds back is not overdue.
local function overdue_longest()
  call('HDEL', META, '-')
  local at, longest = 0, math.huge
  for _ = 1, MOST_CHECKED do
    local head = call('ZRANGE', HEADS, at, at, 'WITHSCORES')
    local said = tonumber(head[2] or longest)
    if said >= longest then return longest end
    local l = lane_of(tonumber(head[1]))
    local due = l and first_due(l)
    if due == said then
      at, longest = at + 1, min(longest, max(due, paused_until(l)))
    else
      if l then l.said = due end
      if due then call('ZADD', HEADS, due, head[1]) else call('ZREM', HEADS, head[1]) end
    end
  end
  return min(longest, now)
end

local longest = overdue_longest()
if #lane_list > 0 then flush_lanes() end
longest = longest < math.huge and { '', string.format('%d', longest) } or {}
return { call('HGETALL', P .. 'counts'), longest, call('HLEN', LANE_IDS), call('LLEN', ANYBODY .. 'prontos'),
  call('ZCARD', WAITING), call('LLEN', BURIED), call('HLEN', P .. 'taken') }
