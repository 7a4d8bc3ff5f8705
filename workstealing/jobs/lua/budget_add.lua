--- needs: stamp
-- Enter keys in the index; one that is there already counts as seen just now.
--
-- KEY index  zset  key -> when it was last entered, ms
-- KEY state  hash  stamp, turn, bytes
-- ARGS keys  str  names of keys
--
-- Reply: number of keys that are new to the index.

local now = stamp(state, 0)
local fresh = 0
for _, key in ipairs(ARGV) do
  fresh = fresh + redis.call('ZADD', index, now, key)
end
return fresh
