--- needs: stamp
-- Enter keys in the index; one that is there already counts as seen just now.
--
-- KEYS[1]  index    zset   key -> when it was last entered, ms
-- KEYS[2]  state    hash   stamp, turn, bytes
-- ARGV[…]  keys     str    names of keys
--
-- Reply: number of keys that are new to the index.

local now = stamp(KEYS[2], 0)
local fresh = 0
for _, key in ipairs(ARGV) do
  fresh = fresh + redis.call('ZADD', KEYS[1], now, key)
end
return fresh
