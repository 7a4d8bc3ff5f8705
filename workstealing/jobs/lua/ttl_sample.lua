--- needs: clock
-- Remember the names of some keys, the latest ones.
--
-- KEY samples  zset  key -> when it was found, ms
-- ARG most    int  how many to remember
-- ARGS found  str  names of keys
--
-- Reply: number of names remembered.

local now = now_ms()
-- Room is made first: a script that has written may write on a full server too.
redis.call('ZREMRANGEBYRANK', samples, 0, #ARGV - found_at - most)
for i = found_at, #ARGV do
  redis.call('ZADD', samples, now, ARGV[i])
end
return redis.call('ZCARD', samples)
