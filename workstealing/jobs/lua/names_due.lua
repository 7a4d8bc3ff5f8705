--- needs: clock
-- Return the names whose time has come, the earliest first.
--
-- KEY due  zset  name -> when it is due, ms
-- ARG most  int  upper bound on names
--
-- Reply: names.

return redis.call('ZRANGE', due, '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, most)
