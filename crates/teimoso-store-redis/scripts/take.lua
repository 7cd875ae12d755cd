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

local function remove_old()
  local old = call('ZRANGEBYSCORE', TAKEN_UNTIL, '-inf', now_text, 'LIMIT', '0', wanted)
  local kept, gone = fetch(TAKEN, old), {}
  for index = 1, #old do
    if not has_room() then break end
    gone[index] = old[index]
    if kept[index] then add(kept[index]) end
  end
  write('ZREM', TAKEN_UNTIL, gone)
  write('HDEL', TAKEN, gone)
end

-- Half of the room is for what is ready, as long as there is some: however much is due, nobody's fresh entry waits for
-- all of it.
local function remove_due()
  local ready = min(call('LLEN', READY), floor(wanted / 2))
  local due = call('ZRANGEBYSCORE', WAITING, '-inf', now_text, 'LIMIT', '0', max(wanted - ready - #entries, 0))
  local gone = {}
  for index = 1, #due do
    if not has_room() then break end
    gone[index] = due[index]
    add(due[index])
  end
  write('ZREM', WAITING, gone)
end

local function remove_ready()
  while has_room() do
    local entry = call('LPOP', READY)
    if not entry then break end
    add(entry)
  end
end

remove_old()
remove_due()
remove_ready()
local answer, leases = {}, {}
for index, entry in ipairs(entries) do
  local own = token .. ':' .. string.format('%d', index)
  answer[2 * index - 1], answer[2 * index] = own, entry
  leases[2 * index - 1], leases[2 * index] = now + lease_ms, own
end
write('HSET', TAKEN, answer)
write('ZADD', TAKEN_UNTIL, leases)
finish()
return answer
