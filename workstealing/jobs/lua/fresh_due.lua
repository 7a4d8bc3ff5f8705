--- needs: clock
-- Name the values that should be computed anew, the most urgent first.
--
-- KEY due  zset  name -> when to compute it anew, ms
-- ARG most  int  upper bound on names
--
-- Reply: names.

return redis.call('ZRANGE', due, '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, most)
