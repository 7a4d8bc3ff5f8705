--- needs: clock
-- Remember the names of some keys, the latest ones.
--
-- KEYS[1]  samples  zset   key -> when it was found, ms
-- ARGV[1]  most     int    how many to remember
-- ARGV[…]  found    str    names of keys
--
-- Reply: number of names remembered.

local now = now_ms()
-- Room is made first: a script that has written may write on a full server too.
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, #ARGV - 2 - ARGV[1])
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], now, ARGV[i])
end
return redis.call('ZCARD', KEYS[1])
