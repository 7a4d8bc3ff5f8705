--- needs: clock
-- Read a value whose deadline has not come.
--
-- KEYS[1]  value      str
-- KEYS[2]  deadlines  zset   name -> when its value dies, ms
-- ARGV[1]  name       str
--
-- Reply: the value, or nil.

local due = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not due or tonumber(due) <= now_ms() then return false end
return redis.call('GET', KEYS[1])
