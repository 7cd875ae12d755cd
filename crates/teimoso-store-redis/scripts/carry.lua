-- In a Cluster, one process carries dead letters to the public list, which is in another slot: copy there, confirm, then
-- remove here. Who carries is a matter of economy only: two that do it make copies twice, and lose none.
--
-- ARGV[4..6]  who asks, for how long it carries in ms, entries wanted
-- ARGV[7..]   how many had been removed before those at the head were copied, and those as they stood
-- Answers     {whether the caller carries (1 or 0), how many were removed so far, entries at the head}

local CARRIER = P .. 'carrier'

call('HDEL', META, '-')

local removed = tonumber(call('HGET', META, 'carried') or '0')
local copied = #ARGV - 7
if copied > 0 then
  local heads = call('LRANGE', BURIED, 0, copied - 1)
  -- They may have been removed before: by another process, or by this call when its answer was lost.
  local same = removed == tonumber(ARGV[7])
  for index = 1, copied do same = same and heads[index] == ARGV[7 + index] end
  if same then
    call('LTRIM', BURIED, copied, -1)
    removed = call('HINCRBY', META, 'carried', copied)
  end
end
local carrier = call('GET', CARRIER)
if carrier and carrier ~= ARGV[4] then return { 0, removed, {} } end
call('SET', CARRIER, ARGV[4], 'PX', ARGV[5])
return { 1, removed, call('LRANGE', BURIED, 0, tonumber(ARGV[6]) - 1) }
