--- needs: clock
-- Give a living value a new deadline.
--
-- KEYS[1]  value      str
-- KEYS[2]  deadlines  zset   name -> when its value dies, ms
-- ARGV[1]  kind       str    'in': time is a duration; 'at': time is a moment
-- ARGV[2]  time       int    ms
-- ARGV[3]  name       str
-- ARGV[4]  value      str    optional: only if the name still has this value
--
-- Reply: 1 if it was done, 0 if there is no such living value.

local now = now_ms()
local old = redis.call('ZSCORE', KEYS[2], ARGV[3])
local held = redis.call('GET', KEYS[1])
if not held or not old or tonumber(old) <= now then return 0 end
if ARGV[4] and held ~= ARGV[4] then return 0 end
local due = tonumber(ARGV[2])
if ARGV[1] == 'in' then due = now + due end
redis.call('ZADD', KEYS[2], due, ARGV[3])
return 1
