--- needs: despite_full, stamp
-- Add keys that a scan has found, and return those that are new to the index.
--
-- KEY index  zset  key -> when it was last entered, ms
-- KEY state  hash  stamp, turn, bytes
-- ARGS keys  str  names of keys
--
-- Reply: time after that, then the keys that are new to the index.

despite_full(state)
local now = stamp(state, 0)
local fresh = {}
for _, key in ipairs(ARGV) do
  -- An existing entry stays as it is: its key may be about to be evicted.
  if redis.call('ZADD', index, 'NX', now, key) == 1 then fresh[#fresh + 1] = key end
end
local reply = {stamp(state, 1)}
for _, key in ipairs(fresh) do
  reply[#reply + 1] = key
end
return reply
