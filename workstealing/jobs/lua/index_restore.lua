-- Put members back that were removed while their key came to be.
--
-- KEYS[1]  index    set or zset
-- ARGV[…]  members  str    member, score, member, score, …; '' for scores of a set
--
-- Reply: number of members that were put back.

local restored = 0
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    restored = restored + redis.call('SADD', KEYS[1], ARGV[i])
  else
    restored = restored + redis.call('ZADD', KEYS[1], 'NX', ARGV[i + 1], ARGV[i])
  end
end
return restored
