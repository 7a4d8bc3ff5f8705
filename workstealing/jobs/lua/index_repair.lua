-- Remove those of the given members whose key is missing, in one step.
--
-- KEY index  set  or zset
-- KEYS keys  any  of the members, in their order
-- ARGS members  str  which
--
-- Reply: number of members removed.

local remove = redis.call('TYPE', index).ok == 'zset' and 'ZREM' or 'SREM'
local removed = 0
for i, member in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[keys_at + i - 1]) == 0 then
    removed = removed + redis.call(remove, index, member)
  end
end
return removed
