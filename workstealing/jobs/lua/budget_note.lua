--- needs: despite_full, usage
-- Bring the index up to date with what was seen of some keys.
--
-- KEYS[1]  index    zset   key -> when it was last entered, ms
-- KEYS[2]  sizes    hash   key -> bytes when last measured
-- KEYS[3]  state    hash   stamp, turn, bytes
-- ARGV[1]  asked    int    the time before the keys were looked at, ms
-- ARGV[2]  measure  int    1: bytes were measured
-- ARGV[…]  seen     str    key, bytes, …; -1 where the key is gone
--
-- Reply: number of keys dropped, then keys and bytes that are left.

despite_full(KEYS[3])
local asked = tonumber(ARGV[1])
local dropped = 0
for i = 3, #ARGV, 2 do
  local key, bytes = ARGV[i], tonumber(ARGV[i + 1])
  local entered = redis.call('ZSCORE', KEYS[1], key)
  local before = tonumber(redis.call('HGET', KEYS[2], key) or 0)
  if entered and bytes >= 0 then
    if ARGV[2] == '1' then
      redis.call('HSET', KEYS[2], key, bytes)
      redis.call('HINCRBY', KEYS[3], 'bytes', bytes - before)
    end
  -- A key entered since we looked may be there by now.
  elseif entered and tonumber(entered) < asked then
    dropped = dropped + redis.call('ZREM', KEYS[1], key)
    redis.call('HDEL', KEYS[2], key)
    redis.call('HINCRBY', KEYS[3], 'bytes', -before)
  end
end
local keys, bytes = usage(KEYS[1], KEYS[2], KEYS[3])
return {dropped, keys, bytes}
