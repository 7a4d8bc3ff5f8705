-- Forget one value; what is being computed for it now will be discarded.
--
-- KEYS[1]  value    hash   value, took, expires, by, read
-- KEYS[2]  due      zset   name -> when to compute it anew, ms
-- KEYS[3]  lease    str    token of the process that computes
-- ARGV[1]  name     str
--
-- Reply: 1 if there was a value, else 0.

redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[3])
return redis.call('UNLINK', KEYS[1])
