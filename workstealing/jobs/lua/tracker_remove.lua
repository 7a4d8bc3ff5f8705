-- Remove ids.
--
-- KEYS[1]  ids      zset   id -> when it was last known to be in the table, ms
-- KEYS[2]  state    hash   stamp, turn, cursor
-- ARGV[…]  removed  str    ids
--
-- Reply: number of ids that were there.

local removed = 0
for _, id in ipairs(ARGV) do
  removed = removed + redis.call('ZREM', KEYS[1], id)
end
return removed
