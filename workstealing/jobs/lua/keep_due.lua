--- needs: clock
-- Name the values whose deadline has come, the oldest first.
--
-- KEYS[1]  deadlines  zset   name -> when its value dies, ms
-- ARGV[1]  most       int    upper bound on names
--
-- Reply: names.

return redis.call('ZRANGE', KEYS[1], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, ARGV[1])
