--- needs: clock
-- Keep a computed value, if the lease to compute it is still ours.
--
-- KEY value  hash  value, took, expires, by, read
-- KEY due    zset  name -> when to recompute it, ms
-- KEY lease  str   token of the process that computes
-- ARG name      str
-- ARG token     str  ours
-- ARG computed  str  the value
-- ARG started   int  when computing began, ms
-- ARG ttl_ms    int
-- ARG stale_ms  int  to keep it after that
-- ARG ahead_ms  int  before it expires that slices recompute it
--
-- Reply: 1 if it was kept, 0 if it was discarded.

if redis.call('HGET', value, 'by') == token then return 1 end
if redis.call('GET', lease) ~= token then return 0 end
local now = now_ms()
local expires = now + ttl_ms
local took = math.max(1, now - started)
redis.call('ZADD', due, expires - ahead_ms, name)
redis.call('HSET', value, 'value', computed, 'took', took, 'expires', expires,
  'by', token, 'read', 0)
redis.call('PEXPIRE', value, ttl_ms + stale_ms)
redis.call('UNLINK', lease)
return 1
