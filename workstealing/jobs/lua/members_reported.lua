-- Forget deaths that were reported, unless another recruit has claimed them since.
--
-- KEY unreported  zset  dead member -> when the claim to report it expires, ms
-- ARG claim     int  end of the caller's claim, ms
-- ARGS members  str  which
--
-- Reply: number of deaths forgotten.

local forgotten = 0
for i = members_at, #ARGV do
  local claimed_until = redis.call('ZSCORE', unreported, ARGV[i])
  if claimed_until and tonumber(claimed_until) == claim then
    forgotten = forgotten + redis.call('ZREM', unreported, ARGV[i])
  end
end
return forgotten
