-- Whose turn it is: what is due is taken, one delivery a turn, from application to application and lane to lane.

-- The lanes of what is taken; what of it may have a record.
local taken_of, later_taken = {}, {}

-- Fresh entries whose delivery was cancelled meanwhile, rows of the history of what was replayed since.
local some_ghosts = true
local function is_ghost(entry) return some_ghosts and call('HDEL', GHOSTS, entry) == 1 end

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

  -- ---- what a lane gives

  -- The next entries of its list, about as many as it will be asked for; those not taken go back.
  local function load_fresh(l, most)
    local entries = call('LPOP', fresh_of(l), min(most, l.fresh))
    -- The list is what counts; the number is kept beside it.
    l.fresh = entries and l.fresh - #entries or 0
    l.front = entries and table.concat(entries) or ''
  end

  local function load_later(l)
    local skip, step = l.gone and #l.gone or 0, l.step or 2
    if l.added then
      write('ZADD', later_of(l), l.added)
      l.added = nil
    end
    local near = call('ZRANGE', later_of(l), skip, skip + step - 1, 'WITHSCORES')
    l.near, l.at, l.more, l.step = near, 1, #near == 2 * step, min(step * 4, CAP + 1)
    l.later, l.stale = tonumber(near[2] or ''), false
  end

  -- The first that waited for later, and is due.
  local function take_later(l)
    if not l.near or l.at > #l.near or l.added then load_later(l) end
    local key = l.near[l.at]
    l.at = l.at + 2
    l.gone = l.gone or {}
    l.gone[#l.gone + 1] = key
    l.later = tonumber(l.near[l.at + 1] or '')
    if not l.later and l.more then l.stale = true end
    later_taken[#later_taken + 1] = key
    return key
  end

  -- The first in front, unless it is to be passed over.
  local function take_fresh(l, at)
    local entry = some_ghosts and sub(l.front, at, at + ENTRY_BYTES - 1)
    return not (entry and is_ghost(entry)) and sub(l.front, at, at + 14)
  end

  -- Whether a lane with so many in flight has to leave the free slots to others.
  local function holds_its_share(l, in_flight)
    local left = max(free - #taken, 0)
    if in_flight >= max(floor((left + in_flight) / 2), 1) then return true end
    return l.answers == 0
      and left < floor((left + held + #taken) / (in_flight == 0 and FIRST_PART or MORE_PART))
  end

  -- So many turns of a lane; it then goes where it waits for its next one.
  local function take_from(l, most)
    if l.health and paused_until(l) > now then return place(l) end
    local in_flight, allowed, at = l.in_flight, allowance(l), 1
    local shared = false
    while most > 0 and in_flight < allowed do
      if at > #l.front and l.fresh > 0 then
        load_fresh(l, min(most, allowed - in_flight))
        at = 1
      end
      local is_fresh, later = at <= #l.front, later_head(l)
      if later and (later > now or (is_fresh and later >= unpk('>I8', l.front, at + 15))) then later = nil end
      if not is_fresh and not later then break end
      shared = holds_its_share(l, in_flight)
      if shared then break end
      local key = nil
      if later then
        key = take_later(l)
      else
        key, at = take_fresh(l, at), at + ENTRY_BYTES
      end
      if key then
        in_flight, most = in_flight + 1, most - 1
        taken[#taken + 1] = key
        taken_of[#taken] = l
      end
    end
    l.in_flight = in_flight
    if at > 1 then l.front = sub(l.front, at) end
    if shared then return put(l, SHARE) end
    place(l)
  end

  -- ---- turns

  -- A queue of which so many are still in Redis: what was read of it, what comes round again.
  local function queue_of(key)
    return { key = key, left = call('LLEN', key), front = {}, at = 1, back = {} }
  end

  -- What was not used goes back to the front, what came round again to the end.
  local function put_back(queue)
    local front = {}
    for index = #queue.front, queue.at, -1 do front[#front + 1] = queue.front[index] end
    write('LPUSH', queue.key, front)
    write('RPUSH', queue.key, queue.back)
  end

  -- The next of a queue; what came round again comes after all that is still in Redis.
  local function next_of(queue, step)
    if queue.at > #queue.front then
      if queue.left > 0 then
        queue.front = call('LPOP', queue.key, step) or {}
        queue.left = #queue.front > 0 and queue.left - #queue.front or 0
      else
        queue.front, queue.back = queue.back, {}
      end
      queue.at = 1
      if queue.holds_lanes then load_lanes(queue.front) end
    end
    local first = queue.front[queue.at]
    queue.at = queue.at + 1
    return first
  end

  local function length_of(queue) return queue.left + #queue.front - queue.at + 1 + #queue.back end

  local looks = 0

  -- So many deliveries of one application: its lanes' turns, several at a time where each would get several.
  local function serve(application, ring, quota)
    local until_taken = #taken + quota
    while #taken < until_taken do
      local waiting = length_of(ring)
      if waiting <= 0 then return end
      local each = max(floor((until_taken - #taken) / waiting), 1)
      for _ = 1, waiting do
        if #taken >= until_taken then return end
        local id = next_of(ring, min(until_taken - #taken, MOST_READ))
        local l = id and lanes[tonumber(id)]
        looks = looks + 1
        if l then
          l.place = NOWHERE
          take_from(l, min(each, until_taken - #taken))
          if l.place == RING then ring.back[#ring.back + 1] = l.id end
        end
        if looks > want + MOST_LANES then return end
      end
    end
  end

  local function take_turns()
    local turns, rings = queue_of(TURNS), {}
    while #taken < want and looks <= want + MOST_LANES do
      local waiting = length_of(turns)
      if waiting <= 0 then break end
      local quota = max(floor((want - #taken) / waiting), 1)
      for _ = 1, min(waiting, want - #taken) do
        local application = next_of(turns, MOST_READ)
        if not application then break end
        local ring = rings[application]
        if not ring then
          ring = queue_of(P .. 'ring:' .. application)
          ring.holds_lanes = true
          rings[application] = ring
        end
        serve(application, ring, min(quota, want - #taken))
        if length_of(ring) > 0 then turns.back[#turns.back + 1] = application end
        if #taken >= want then break end
      end
    end
    if looks > want + MOST_LANES then unfinished = 1 end
    for _, ring in pairs(rings) do put_back(ring) end
    put_back(turns)
    -- What `put` said of their rings was heard above.
    ring_ends = {}
    for index = 1, #lane_list do
      local l = lane_list[index]
      if #l.front > FRONT_BYTES then
        local back = {}
        for at = #l.front - ENTRY_BYTES + 1, FRONT_BYTES + 1, -ENTRY_BYTES do
          back[#back + 1] = sub(l.front, at, at + ENTRY_BYTES - 1)
        end
        write('LPUSH', fresh_of(l), back)
        l.fresh, l.front = l.fresh + #back, sub(l.front, 1, FRONT_BYTES)
      end
    end
  end

  some_ghosts = call('HLEN', GHOSTS) > 0
  ready_timers()
  look_at_shares_again()
  flush_rings()
  take_turns()
end
