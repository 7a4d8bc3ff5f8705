--- needs: despite_full, stamp
-- Enter keys that a scan has met, and say which of them the index did not know.
--
-- KEYS[1]  index    zset   key -> when it was last entered, ms
-- KEYS[2]  state    hash   stamp, turn, bytes
-- ARGV[…]  keys     str    names of keys
--
-- Reply: time after that, then the keys that are new to the index.

despite_full(KEYS[2])
local now = stamp(KEYS[2], 0)
local fresh = {}
for _, key in ipairs(ARGV) do
  -- An entry that is there stays as it is: its key may be about to be evicted.
  if redis.call('ZADD', KEYS[1], 'NX', now, key) == 1 then fresh[#fresh + 1] = key end
end
local reply = {stamp(KEYS[2], 1)}
for _, key in ipairs(fresh) do
  reply[#reply + 1] = key
end
return reply
