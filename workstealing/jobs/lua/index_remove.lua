-- Remove members whose key, in another slot, was seen missing.
--
-- A member of a sorted set whose score changed since it was drawn stays.
--
-- KEY index  set  or zset
-- ARGS members  str  member, score, member, score, …; '' for scores of a set
--
-- Reply: number of members removed.

local zset = redis.call('TYPE', index).ok == 'zset'
local removed = 0
for i = members_at, #ARGV, 2 do
  if not zset then
    removed = removed + redis.call('SREM', index, ARGV[i])
  elseif redis.call('ZSCORE', index, ARGV[i]) == ARGV[i + 1] then
    removed = removed + redis.call('ZREM', index, ARGV[i])
  end
end
return removed
