-- Remove ids.
--
-- KEY ids    zset  id -> when it was last known to be in the table, ms
-- ARGS removed  str  ids
--
-- Reply: number of ids that were there.

local removed = 0
for _, id in ipairs(ARGV) do
  removed = removed + redis.call('ZREM', ids, id)
end
return removed
