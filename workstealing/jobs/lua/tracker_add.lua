--- needs: stamp
-- Add ids; one that is there already counts as added just now.
--
-- KEY ids    zset  id -> when it was last known to be in the table, ms
-- KEY state  hash  stamp, turn, cursor
-- ARGS added  str  ids
--
-- Reply: number of ids that are new.

local now = stamp(state, 0)
local fresh = 0
for _, id in ipairs(ARGV) do
  fresh = fresh + redis.call('ZADD', ids, now, id)
end
return fresh
