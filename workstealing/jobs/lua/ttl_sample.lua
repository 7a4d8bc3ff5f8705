--- needs: clock
-- Remember the names of some keys, the latest ones.
--
-- KEYS[1]  samples  zset   key -> when it was found, ms
-- ARGV[1]  most     int    how many to remember
-- ARGV[…]  found    str    names of keys
--
-- Reply: number of names remembered.

local now = now_ms()
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], now, ARGV[i])
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[1] - 1)
return redis.call('ZCARD', KEYS[1])
