-- Draw some members of an index by chance.
--
-- KEYS[1]  index  set or zset
-- ARGV[1]  most   int    upper bound on members
--
-- Reply: member, score, member, score, …; a plain set has '' for scores.

if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  return redis.call('ZRANDMEMBER', KEYS[1], ARGV[1], 'WITHSCORES')
end
local flat = {}
for _, member in ipairs(redis.call('SRANDMEMBER', KEYS[1], ARGV[1])) do
  flat[#flat + 1] = member
  flat[#flat + 1] = ''
end
return flat
