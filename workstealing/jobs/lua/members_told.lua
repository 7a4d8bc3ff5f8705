-- Forget deaths that were told, unless somebody else has claimed them since.
--
-- KEYS[1]  untold   zset   dead member -> when the claim to tell it runs out, ms
-- ARGV[1]  claim    int    end of the caller's claim, ms
-- ARGV[…]  members  str    which
--
-- Reply: number of deaths forgotten.

local forgotten = 0
for i = 2, #ARGV do
  local claim = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if claim and tonumber(claim) == tonumber(ARGV[1]) then
    forgotten = forgotten + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return forgotten
