-- Where tracking is missing: who may block on the ready list, and what was moved from it to a list of a process's own.
--
-- ARGV[4..7]  'arm': register, unless so many are; 'unstage': have the own entries adopted; 'sweep': neither
--             who asks, how long a registration lasts in ms, how many there may be
-- Answers     {whether the caller is registered (1 or 0)}

-- Entries taken and not yet adopted, token to bytes, and when each is anybody's again; processes that block on the
-- ready list, and until when each is believed to live: their lists hold what they took.
local TAKEN, TAKEN_UNTIL, STAGED = P .. 'taken', P .. 'taken_until', P .. 'staged'

local what, who, lasts_ms, most = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])

call('HDEL', META, '-')

-- To those that wait for adoption, for whoever takes next: put back, an entry would wake the next who blocks.
local function unstage(owner)
  while true do
    local entry = call('LPOP', P .. 'staged:' .. owner)
    if not entry then return end
    local token = owner .. ':s' .. string.format('%d', call('HINCRBY', META, 'staged', 1))
    call('HSET', TAKEN, token, entry)
    call('ZADD', TAKEN_UNTIL, now, token)
  end
end

for _, owner in ipairs(call('ZRANGEBYSCORE', STAGED, '-inf', now, 'LIMIT', 0, 100)) do
  call('ZREM', STAGED, owner)
  unstage(owner)
end
if what == 'sweep' then return { 0 } end
unstage(who)
local registered = call('ZSCORE', STAGED, who)
if what == 'arm' and (registered or call('ZCARD', STAGED) < most) then
  call('ZADD', STAGED, now + lasts_ms, who)
  registered = true
end
return { registered and 1 or 0 }
