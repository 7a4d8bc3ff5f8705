-- Claim entries whose consumers are silent, from where the last slice stopped.
--
-- KEY stream  stream
-- KEY cursor  str     where to go on
-- ARG group     str
-- ARG consumer  str  in whose name they are claimed
-- ARG idle      int  ms of silence
-- ARG most      int  upper bound on entries
--
-- Reply: number of entries found, then of each that still exists: id, deliveries,
-- how many parts follow, field, value, field, value, …

if redis.call('EXISTS', stream) == 0 then return {0} end
local from = redis.call('GET', cursor) or '0-0'
-- JUSTID, because Redis 6.2 would not return the ids of entries that were deleted.
local claimed = redis.call('XAUTOCLAIM', stream, group, consumer, idle, from,
  'COUNT', most, 'JUSTID')
redis.call('SET', cursor, claimed[1])
local reply = {#claimed[2]}
for _, id in ipairs(claimed[2]) do
  local entry = redis.call('XCLAIM', stream, group, consumer, 0, id)[1]
  local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if entry and pending then
    reply[#reply + 1] = id
    reply[#reply + 1] = pending[4]
    reply[#reply + 1] = #entry[2]
    for _, part in ipairs(entry[2]) do
      reply[#reply + 1] = part
    end
  else
    redis.call('XACK', stream, group, id)
  end
end
return reply
