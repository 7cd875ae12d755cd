-- What a cycle does beside a worker's own: leases that ended, replays. A bounded slice of each.

local taken, unfinished = {}, 0
-- Deliveries recovered or replayed by one script; jobs looked at.
local SLICE, MOST_JOBS = 100, 20

-- A lease is one of its claim's, all of which end at once; or its delivery's own, once it was renewed.
local function recover_expired(members)
  -- What was held when its process died or lost it: again, unless that may repeat what must not be, or it kills us.
  local function recover(d)
    end_lease(d)
    local l = lane_of(d.lane)
    if l then release(l, NEUTRAL, 0, now) end
    d.recoveries = min(d.recoveries + 1, 255)
    if d.mode == AT_MOST_ONCE then return rest(d, NEXT_DEAD, REASON_AMBIGUOUS, 0, 0, now) end
    -- One that dies in a public key is given to a worker first: only there is its text edited.
    if d.recoveries >= MAX_RECOVERIES and d.flags % 4 ~= ADOPTED then return rest(d, NEXT_DEAD, REASON_POISON, 0, 0, now) end
    rest(d, NEXT_RELEASED, 0, 0, 0, now)
  end

  -- The leases of one claim that were not renewed each for itself; answers how many were looked at.
  local function recover_claim(by, room)
    local keys, looked = call('HGET', P .. 'claims', by) or '', {}
    for from = 1, min(#keys, 15 * room), 15 do looked[#looked + 1] = sub(keys, from, from + 14) end
    local found = fetch(DELIVERIES, looked)
    for index, key in ipairs(looked) do
      if raws[key] == nil then raws[key] = found[index] end
      local d = delivery(key)
      if d and d.state == IN_FLIGHT and d.nonce == by and d.flags < RENEWED then recover(d) end
    end
    if #looked * 15 < #keys then
      call('HSET', P .. 'claims', by, sub(keys, #looked * 15 + 1))
    else
      call('HDEL', P .. 'claims', by, by .. '#')
      leases_gone[#leases_gone + 1] = by
    end
    return #looked
  end

  local room = SLICE
  for _, member in ipairs(members) do
    if room <= 0 then break end
    if #member == 16 then
      room = room - max(recover_claim(member, room), 1)
    else
      local d = delivery(member)
      room = room - 1
      leases_gone[#leases_gone + 1] = member
      if d and d.state == IN_FLIGHT then recover(d) end
    end
  end
  if room <= 0 then unfinished = 1 end
end

-- ---- replay

local function run_replays(due)
  local JOBS, JOBS_DUE = P .. 'jobs', P .. 'jobs_due'
  -- version, state, filtered reason (0: any), since plus 1 and until plus 1 (0: open), rate, estimated, done, failed,
  -- created, finished plus 1 (0: not)
  local JOB, FINISHED = '>BBBI8I8I4I8I8I8I8I8', 1

  -- An entry of the public list goes the way of one that was pushed; its text says that it was dead.
  local function move_back(item, token)
    local from = 6 + unpk('>I4', item, 2)
    if call('LREM', BURIED, '1', sub(item, from)) == 0 then return false end
    call('HSET', P .. 'taken', token, from > 6 and sub(item, 6, from - 1) or sub(item, 6))
    call('ZADD', P .. 'taken_until', now_text, token)
    return true
  end

  local function replay(item, token)
    if sub(item, 1, 1) == 'p' then return move_back(item, token) end
    local d = delivery(item)
    if not d or d.state ~= DEAD then return false end
    renew(d)
    return true
  end

  local function run_job(id, room)
    local raw = call('HGET', JOBS, id)
    if not raw then
      call('ZREM', JOBS_DUE, id)
      return room
    end
    local version, state, reason, since, until_ms, rate, estimated, done, failed, created, finished = unpk(JOB, raw)
    local turn = function() return created + math.ceil((done + failed) * 1000 / rate) end
    local left = P .. 'job:' .. id
    local ended = false
    while room > 0 and turn() <= now do
      local item = call('LPOP', left)
      if not item then
        ended = true
        break
      end
      if replay(item, id .. ':' .. string.format('%d', done + failed)) then
        done = done + 1
      else
        failed = failed + 1
      end
      room = room - 1
    end
    if ended or call('LLEN', left) == 0 then
      state, finished = FINISHED, now + 1
      call('ZREM', JOBS_DUE, id)
      call('ZADD', P .. 'jobs_ended', now_text, id)
    else
      call('ZADD', JOBS_DUE, turn(), id)
    end
    call('HSET', JOBS, id,
      pack(JOB, version, state, reason, since, until_ms, rate, estimated, done, failed, created, finished))
    return room
  end

  local room = SLICE
  for _, id in ipairs(due) do
    room = run_job(id, room)
    if room == 0 then
      unfinished = 1
      return
    end
  end
end

if will_claim then
  local ended = grace <= now and call('ZRANGEBYSCORE', P .. 'leases', '-inf', now_text, 'LIMIT', '0', SLICE) or {}
  if #ended > 0 then recover_expired(ended) end
  local jobs = call('ZRANGEBYSCORE', P .. 'jobs_due', '-inf', now_text, 'LIMIT', '0', MOST_JOBS)
  if #jobs > 0 then run_replays(jobs) end
end
