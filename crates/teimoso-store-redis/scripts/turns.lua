-- Whose turn it is: what is due is taken, one delivery a turn, from application to application and lane to lane.

-- The lanes of what is taken; what of it may have a record.
local taken_of, later_taken = {}, {}

-- Fresh entries whose delivery was cancelled meanwhile, rows of the history of what was replayed since.
local some_ghosts = nil
local function is_ghost(entry)
  if some_ghosts == nil then some_ghosts = call('HLEN', GHOSTS) > 0 end
  return some_ghosts and call('HDEL', GHOSTS, entry) == 1
end

local function take()
  -- Lanes whose timer rang, or that a share held back, looked at by one script; applications read at once.
  local MOST_LANES, MOST_READ = 200, 64

  local function ready_timers()
    local ids, gone = call('ZRANGEBYSCORE', TIMERS, '-inf', now, 'LIMIT', 0, MOST_LANES), {}
    if #ids == 0 then return end
    load_lanes(ids)
    for _, id in ipairs(ids) do
      local l = lanes[tonumber(id)]
      if not l or l.place == TIMER then gone[#gone + 1] = id end
      if l and l.place == TIMER then
        l.place, l.timer = NOWHERE, nil
        place(l)
        if l.place == TIMER then gone[#gone] = nil end
      end
    end
    write('ZREM', TIMERS, gone)
    if #ids == MOST_LANES then unfinished = 1 end
  end

  local function look_at_shares_again()
    local ids = call('LPOP', SHARED, MOST_LANES) or {}
    load_lanes(ids)
    for _, id in ipairs(ids) do
      local l = lanes[tonumber(id)]
      if l and l.place == SHARE then
        l.place = NOWHERE
        place(l)
      end
    end
  end

  -- ---- the heads of a lane

  -- Takes fresh entries out, few at first: with many lanes a claim takes little of each. Those not taken go back.
  local function load_fresh(l)
    local step = l.step or 1
    local entries = call('LPOP', fresh_of(l), min(step, l.fresh, max(allowance(l) - l.in_flight, 1)))
    l.step = min(step * 4, CAP)
    -- The list is what counts; the number is kept beside it.
    if not entries then l.fresh, entries = 0, {} end
    l.entries, l.entry = entries, 1
  end

  local function load_later(l)
    local skip, step = l.gone and #l.gone or 0, l.later_step or 2
    if l.added then
      write('ZADD', later_of(l), l.added)
      l.added = nil
    end
    local near = call('ZRANGE', later_of(l), skip, skip + step - 1, 'WITHSCORES')
    l.near, l.at, l.more, l.later_step = near, 1, #near == 2 * step, min(step * 4, CAP + 1)
    l.later, l.stale = tonumber(near[2] or ''), false
  end

  -- The first that is due, as its key and when it was due; nil when none is.
  local function next_due(l)
    local entry = nil
    if l.fresh > 0 then
      if not l.entries or l.entry > #l.entries then load_fresh(l) end
      entry = l.entries[l.entry]
    end
    local later = later_head(l)
    if later and later <= now and (not entry or later < unpk('>I8', entry, 16)) then
      if not l.near or l.at > #l.near or l.added then load_later(l) end
      local key = l.near[l.at]
      l.at = l.at + 2
      l.gone = l.gone or {}
      l.gone[#l.gone + 1] = key
      l.later = tonumber(l.near[l.at + 1] or '')
      if not l.later and l.more then l.stale = true end
      return key
    end
    if not entry then return nil end
    l.entry, l.fresh = l.entry + 1, l.fresh - 1
    return sub(entry, 1, 15), entry
  end

  -- One entry of a lane whose turn it is; the lane then goes where it waits for its next turn.
  local function take_from(l, left)
    local slots, allowed = left + held + #taken, allowance(l)
    if l.in_flight >= allowed then return end
    local later = l.fresh == 0 and later_head(l)
    if l.fresh == 0 and not later then return end
    if (later and later > now) or (l.health and paused_until(l) > now) then return place(l) end
    if l.in_flight >= max(floor((left + l.in_flight) / 2), 1) then return put(l, SHARE) end
    if l.answers == 0 and left < floor(slots / (l.in_flight == 0 and FIRST_PART or MORE_PART)) then
      return put(l, SHARE)
    end
    local key, entry = next_due(l)
    if key and not (entry and is_ghost(entry)) then
      l.in_flight = l.in_flight + 1
      taken[#taken + 1] = key
      taken_of[#taken] = l
      if not entry then later_taken[#later_taken + 1] = key end
    end
    place(l)
  end

  -- ---- turns

  -- A queue of which so many are still in Redis: what was read of it, what comes round again.
  local function queue_of(key) return { key = key, left = call('LLEN', key), front = {}, at = 1, back = {}, next = 1 } end

  -- What is first in a queue.
  local function shift_queue(queue, step)
    if queue.left > 0 and queue.at > #queue.front then
      queue.front, queue.at = call('LPOP', queue.key, step) or {}, 1
      queue.left = #queue.front > 0 and queue.left - #queue.front or 0
    end
    local first = queue.front[queue.at]
    if first then
      queue.at = queue.at + 1
      return first
    end
    first = queue.back[queue.next]
    if first then queue.next = queue.next + 1 end
    return first
  end

  local function is_drained(queue) return queue.left == 0 and not queue.front[queue.at] and not queue.back[queue.next] end

  -- What was not used goes back to the front, what came round again to the end.
  local function put_back(queue)
    local front = {}
    for index = #queue.front, queue.at, -1 do front[#front + 1] = queue.front[index] end
    write('LPUSH', queue.key, front)
    local back = {}
    for index = queue.next, #queue.back do back[#back + 1] = queue.back[index] end
    write('RPUSH', queue.key, back)
  end

  -- The applications' lanes, by application.
  local rings = {}

  local function next_lane(application)
    local ring = rings[application]
    if not ring then
      ring = queue_of(P .. 'ring:' .. application)
      ring.lanes = max(ring.left, 1)
      rings[application] = ring
    end
    local before = ring.front
    local id = shift_queue(ring, min(want - #taken, MOST_READ))
    if ring.front ~= before then load_lanes(ring.front) end
    return ring, id and lanes[tonumber(id)]
  end

  -- Where `put` said the lanes of this application go: to the end of its turns here.
  local function come_round(application, ring)
    local ended = ring_ends[application]
    if ended then
      for index = 1, #ended do ring.back[#ring.back + 1] = ended[index] end
      ring_ends[application] = nil
    end
  end

  local function take_turns()
    local turns, looks = queue_of(TURNS), 0
    while #taken < want do
      local application = shift_queue(turns, MOST_READ)
      if not application then break end
      local ring, l = next_lane(application)
      if l then
        l.place = NOWHERE
        -- As many fresh ones at once as its turns may come to.
        l.step = l.step or max(floor((want - #taken) / ring.lanes), 1)
        take_from(l, max(free - #taken, 0))
        come_round(application, ring)
      end
      if not is_drained(ring) then turns.back[#turns.back + 1] = application end
      looks = looks + 1
      if looks == want + MOST_LANES then
        unfinished = 1
        break
      end
    end
    for _, ring in pairs(rings) do put_back(ring) end
    put_back(turns)
    for index = 1, #lane_list do
      local l = lane_list[index]
      local entries = l.entries
      if entries and l.entry <= #entries then
        local back = {}
        for at = #entries, l.entry, -1 do back[#back + 1] = entries[at] end
        write('LPUSH', fresh_of(l), back)
      end
    end
  end

  ready_timers()
  look_at_shares_again()
  flush_rings()
  take_turns()
end
