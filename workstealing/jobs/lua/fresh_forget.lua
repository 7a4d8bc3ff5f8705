-- Forget one value; what is being computed for it now will be discarded.
--
-- KEY value  hash  value, took, expires, by, read
-- KEY due    zset  name -> when to recompute it, ms
-- KEY lease  str   token of the process that computes
-- ARG name  str
--
-- Reply: 1 if there was a value, else 0.

redis.call('ZREM', due, name)
redis.call('UNLINK', lease)
return redis.call('UNLINK', value)
