--- needs: clock
-- Name the values whose deadline has come, the oldest first.
--
-- KEY deadlines  zset  name -> when its value dies, ms
-- ARG most  int  upper bound on names
--
-- Reply: names.

return redis.call('ZRANGE', deadlines, '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, most)
