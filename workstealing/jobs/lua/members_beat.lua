--- needs: clock
-- Record a sign of life of a member.
--
-- KEY members  zset  member -> when its silence is too long, ms
-- ARG silence  int  ms
-- ARG member   str
--
-- Reply: 1 if it is a member, 0 if it left or was removed.

if not redis.call('ZSCORE', members, member) then return 0 end
redis.call('ZADD', members, now_ms() + silence, member)
return 1
