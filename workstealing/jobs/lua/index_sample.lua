-- Draw some members of an index by chance.
--
-- KEY index  set  or zset
-- ARG most  int  upper bound on members
--
-- Reply: member, score, member, score, …; a plain set has '' for scores.

if redis.call('TYPE', index).ok == 'zset' then
  return redis.call('ZRANDMEMBER', index, most, 'WITHSCORES')
end
local flat = {}
for _, member in ipairs(redis.call('SRANDMEMBER', index, most)) do
  flat[#flat + 1] = member
  flat[#flat + 1] = ''
end
return flat
