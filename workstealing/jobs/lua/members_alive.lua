--- needs: clock
-- Name the members that were heard of lately.
--
-- KEY members  zset  member -> when its silence is too long, ms
--
-- Reply: members, the one that is silent the longest first.

return redis.call('ZRANGE', members, string.format('(%.0f', now_ms()), '+inf', 'BYSCORE')
