--- needs: clock
-- Name the members that were heard of lately.
--
-- KEYS[1]  members  zset   member -> when its silence is too long, ms
--
-- Reply: members, the one that is silent the longest first.

return redis.call('ZRANGE', KEYS[1], string.format('(%.0f', now_ms()), '+inf', 'BYSCORE')
