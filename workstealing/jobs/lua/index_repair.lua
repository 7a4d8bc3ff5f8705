-- Remove those of the given members whose key is missing, in one step.
--
-- KEYS[1]  index    set or zset
-- KEYS[…]  keys     any   of the members, in their order
-- ARGV[…]  members  str   which
--
-- Reply: number of members removed.

local remove = redis.call('TYPE', KEYS[1]).ok == 'zset' and 'ZREM' or 'SREM'
local removed = 0
for i, member in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 0 then
    removed = removed + redis.call(remove, KEYS[1], member)
  end
end
return removed
