-- Put members back that were removed while their key came to be.
--
-- KEY index  set  or zset
-- ARGS members  str  member, score, member, score, …; '' for scores of a set
--
-- Reply: number of members that were put back.

local restored = 0
for i = members_at, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    restored = restored + redis.call('SADD', index, ARGV[i])
  else
    restored = restored + redis.call('ZADD', index, 'NX', ARGV[i + 1], ARGV[i])
  end
end
return restored
