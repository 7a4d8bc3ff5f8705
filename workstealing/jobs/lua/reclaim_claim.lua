-- Claim entries whose consumers are silent, from where the last slice stopped.
--
-- KEYS[1]  stream   stream
-- KEYS[2]  cursor   str    where to go on
-- ARGV[1]  group    str
-- ARGV[2]  consumer str    in whose name they are claimed
-- ARGV[3]  idle     int    ms of silence
-- ARGV[4]  most     int    upper bound on entries
--
-- Reply: number of entries found, then of each that still exists: id, deliveries,
-- how many parts follow, field, value, field, value, …

if redis.call('EXISTS', KEYS[1]) == 0 then return {0} end
local from = redis.call('GET', KEYS[2]) or '0-0'
-- JUSTID, because Redis 6.2 would not tell the ids of entries that were deleted.
local claimed = redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], from,
  'COUNT', ARGV[4], 'JUSTID')
redis.call('SET', KEYS[2], claimed[1])
local reply = {#claimed[2]}
for _, id in ipairs(claimed[2]) do
  local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id)[1]
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1]
  if entry and pending then
    reply[#reply + 1] = id
    reply[#reply + 1] = pending[4]
    reply[#reply + 1] = #entry[2]
    for _, part in ipairs(entry[2]) do
      reply[#reply + 1] = part
    end
  else
    redis.call('XACK', KEYS[1], ARGV[1], id)
  end
end
return reply
