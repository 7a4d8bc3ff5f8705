--- needs: stamp
-- Add ids; one that is there already counts as added just now.
--
-- KEYS[1]  ids      zset   id -> when it was last known to be in the table, ms
-- KEYS[2]  state    hash   stamp, turn, cursor
-- ARGV[…]  added    str    ids
--
-- Reply: number of ids that are new.

local now = stamp(KEYS[2], 0)
local fresh = 0
for _, id in ipairs(ARGV) do
  fresh = fresh + redis.call('ZADD', KEYS[1], now, id)
end
return fresh
