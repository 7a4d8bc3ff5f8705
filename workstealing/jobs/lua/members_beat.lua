--- needs: clock
-- Hear a sign of life from a member.
--
-- KEYS[1]  members  zset   member -> when its silence is too long, ms
-- ARGV[1]  silence  int    ms
-- ARGV[2]  member   str
--
-- Reply: 1 if it is a member, 0 if it left or was removed.

if not redis.call('ZSCORE', KEYS[1], ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now_ms() + tonumber(ARGV[1]), ARGV[2])
return 1
