--- needs: clock
-- Make somebody a member, who is alive for as long as silence is allowed.
--
-- KEYS[1]  members  zset   member -> when its silence is too long, ms
-- ARGV[1]  silence  int    ms
-- ARGV[2]  member   str
--
-- Reply: 1 if there was no such living member, else 0.

local now = now_ms()
local old = redis.call('ZSCORE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[2])
return (not old or tonumber(old) <= now) and 1 or 0
