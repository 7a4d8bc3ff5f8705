--- needs: despite_full, usage
-- Update the index with what was found of some keys.
--
-- KEY index  zset  key -> when it was last entered, ms
-- KEY sizes  hash  key -> bytes when last measured
-- KEY state  hash  stamp, turn, bytes
-- ARG asked    int   the time before the keys were inspected, ms
-- ARG measure  flag  bytes were measured
-- ARGS seen    str   key, bytes, …; -1 where the key is gone
--
-- Reply: number of keys dropped, then keys and bytes that are left.

despite_full(state)
local dropped = 0
for i = seen_at, #ARGV, 2 do
  local key, bytes = ARGV[i], tonumber(ARGV[i + 1])
  local entered = redis.call('ZSCORE', index, key)
  local before = tonumber(redis.call('HGET', sizes, key) or 0)
  if entered and bytes >= 0 then
    if measure then
      redis.call('HSET', sizes, key, bytes)
      redis.call('HINCRBY', state, 'bytes', bytes - before)
    end
  -- A key that was added since the inspection may exist now.
  elseif entered and tonumber(entered) < asked then
    dropped = dropped + redis.call('ZREM', index, key)
    redis.call('HDEL', sizes, key)
    -- Not -before: of 0 that is -0, which Redis before 7.2 does not take for a number.
    redis.call('HINCRBY', state, 'bytes', 0 - before)
  end
end
local keys, bytes = usage(index, sizes, state)
return {dropped, keys, bytes}
