-- Remove members whose key, in another slot, was seen missing.
--
-- A member of a sorted set whose score changed since it was drawn stays.
--
-- KEYS[1]  index    set or zset
-- ARGV[…]  members  str    member, score, member, score, …; '' for scores of a set
--
-- Reply: number of members removed.

local zset = redis.call('TYPE', KEYS[1]).ok == 'zset'
local removed = 0
for i = 1, #ARGV, 2 do
  if not zset then
    removed = removed + redis.call('SREM', KEYS[1], ARGV[i])
  elseif redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    removed = removed + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return removed
