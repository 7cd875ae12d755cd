-- Replay jobs: begun with a list of deliveries that was prepared beside, or stopped.
--
-- ARGV[4]  'start': [5] the prepared list's key without the shard's tag, [6] the job's record, of which the filter and
--          the rate are read
--          'stop': [5] the job's key
-- Answers  {bell, key, record}, or {bell} when there is no such job

local JOB = '>BBBI8I8I4I8I8I8I8I8'
local RUNNING, FINISHED, STOPPED = 0, 1, 2
-- Jobs by when they ended: the history's age is theirs, too.
local JOBS, JOBS_DUE, JOBS_ENDED = P .. 'jobs', P .. 'jobs_due', P .. 'jobs_ended'

local function start(prepared, raw)
  local version, state, reason, since, until_ms, rate = unpk(JOB, raw)
  local key = next_key()
  local estimated, finished = call('LLEN', prepared), 0
  if estimated == 0 then
    state, finished = FINISHED, now + 1
    call('ZADD', JOBS_ENDED, now_text, key)
  else
    state = RUNNING
    call('RENAME', prepared, P .. 'job:' .. key)
    call('PERSIST', P .. 'job:' .. key)
    call('ZADD', JOBS_DUE, now, key)
    ring_bell = true
  end
  local record = pack(JOB, version, state, reason, since, until_ms, rate, estimated, 0, 0, now, finished)
  call('HSET', JOBS, key, record)
  return { finish(), key, record }
end

local function stop(key)
  local record = call('HGET', JOBS, key)
  if not record then return { finish() } end
  local version, state, reason, since, until_ms, rate, estimated, done, failed, created, finished = unpk(JOB, record)
  if state == RUNNING then
    call('DEL', P .. 'job:' .. key)
    call('ZREM', JOBS_DUE, key)
    record = pack(JOB, version, STOPPED, reason, since, until_ms, rate, estimated, done, failed, created, now + 1)
    call('HSET', JOBS, key, record)
    call('ZADD', JOBS_ENDED, now_text, key)
  end
  return { finish(), key, record }
end

if ARGV[4] == 'start' then return start(P .. ARGV[5], ARGV[6]) end
return stop(ARGV[5])
