--- needs: clock
-- Name the values that should be computed anew, the most urgent first.
--
-- KEYS[1]  due      zset   name -> when to compute it anew, ms
-- ARGV[1]  most     int    upper bound on names
--
-- Reply: names.

return redis.call('ZRANGE', KEYS[1], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, ARGV[1])
