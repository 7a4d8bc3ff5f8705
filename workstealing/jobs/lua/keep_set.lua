--- needs: clock
-- Set one value with its deadline; a key without a TTL is not evicted by volatile-*.
--
-- KEYS[1]  value      str
-- KEYS[2]  deadlines  zset   name -> when its value dies, ms
-- ARGV[1]  kind       str    'in': time is a duration; 'at': time is a moment
-- ARGV[2]  time       int    ms
-- ARGV[3]  name       str
-- ARGV[4]  value      str
-- ARGV[5]  add        int    1: leave another living value in place
--
-- Reply: 1 if the name has this value now, 0 if it has another.

local now = now_ms()
local due = tonumber(ARGV[2])
if ARGV[1] == 'in' then due = now + due end
local old = redis.call('ZSCORE', KEYS[2], ARGV[3])
if ARGV[5] == '1' and old and tonumber(old) > now then
  local held = redis.call('GET', KEYS[1])
  if held and held ~= ARGV[4] then return 0 end
end
redis.call('ZADD', KEYS[2], due, ARGV[3])
redis.call('SET', KEYS[1], ARGV[4])
return 1
