--- needs: clock
-- Keep a computed value, if the lease to compute it is still ours.
--
-- KEYS[1]  value    hash   value, took, expires, by, read
-- KEYS[2]  due      zset   name -> when to compute it anew, ms
-- KEYS[3]  lease    str    token of the process that computes
-- ARGV[1]  name     str
-- ARGV[2]  token    str    ours
-- ARGV[3]  value    str
-- ARGV[4]  started  int    when computing began, ms
-- ARGV[5]  ttl      int    ms
-- ARGV[6]  stale    int    ms to keep it after that
-- ARGV[7]  ahead    int    ms before it expires that slices compute it anew
--
-- Reply: 1 if it was kept, 0 if it was discarded.

if redis.call('HGET', KEYS[1], 'by') == ARGV[2] then return 1 end
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
local now = now_ms()
local expires = now + ARGV[5]
local took = math.max(1, now - ARGV[4])
redis.call('ZADD', KEYS[2], expires - ARGV[7], ARGV[1])
redis.call('HSET', KEYS[1], 'value', ARGV[3], 'took', took, 'expires', expires,
  'by', ARGV[2], 'read', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[5] + ARGV[6])
redis.call('UNLINK', KEYS[3])
return 1
