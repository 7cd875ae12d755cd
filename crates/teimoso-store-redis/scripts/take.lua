-- Takes entries from the public keys under a short lease, for the caller to read: what nobody adopted in time, what
-- waited and is due, what is ready. Removes first, adds second. An entry is opaque bytes here.
--
-- ARGV[4..7]  a token of 32 digits that no other call has, entries wanted, bytes wanted, the lease in ms
-- Answers     per entry its token and its bytes

call('HDEL', META, '-')

-- The keys of anybody, and what was taken from them and not yet adopted: token to bytes, and when each is anybody's
-- again.
local READY = ANYBODY .. 'prontos'
local TAKEN, TAKEN_UNTIL = P .. 'taken', P .. 'taken_until'

local token, wanted, most_bytes, lease_ms = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local entries, bytes = {}, 0

local function add(entry)
  entries[#entries + 1] = entry
  bytes = bytes + #entry
end

local function has_room() return #entries < wanted and bytes < most_bytes end

for _, old in ipairs(call('ZRANGEBYSCORE', TAKEN_UNTIL, '-inf', now, 'LIMIT', 0, wanted)) do
  if not has_room() then break end
  local entry = call('HGET', TAKEN, old)
  call('ZREM', TAKEN_UNTIL, old)
  call('HDEL', TAKEN, old)
  if entry then add(entry) end
end
for _, entry in ipairs(call('ZRANGEBYSCORE', WAITING, '-inf', now, 'LIMIT', 0, math.max(wanted - #entries, 0))) do
  if not has_room() then break end
  call('ZREM', WAITING, entry)
  add(entry)
end
while has_room() do
  local entry = call('LPOP', READY)
  if not entry then break end
  add(entry)
end

local answer = {}
for index, entry in ipairs(entries) do
  local own = token .. ':' .. string.format('%d', index)
  call('HSET', TAKEN, own, entry)
  call('ZADD', TAKEN_UNTIL, now + lease_ms, own)
  answer[2 * index - 1], answer[2 * index] = own, entry
end
finish()
return answer
