--- needs: clock
-- Add a member, which is taken to be alive for as long as silence is allowed.
--
-- KEY members  zset  member -> when its silence is too long, ms
-- ARG silence  int  ms
-- ARG member   str
--
-- Reply: 1 if there was no such living member, else 0.

local now = now_ms()
local old = redis.call('ZSCORE', members, member)
redis.call('ZADD', members, now + silence, member)
return (not old or tonumber(old) <= now) and 1 or 0
