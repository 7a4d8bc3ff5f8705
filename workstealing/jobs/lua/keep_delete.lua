--- needs: clock
-- Delete a living value and its deadline.
--
-- KEYS[1]  value      str
-- KEYS[2]  deadlines  zset   name -> when its value dies, ms
-- ARGV[1]  name       str
-- ARGV[2]  value      str    optional: only if the name still has this value
--
-- Reply: 1 if it was done, 0 if there is no such living value.

local due = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not due or tonumber(due) <= now_ms() then return 0 end
if ARGV[2] and redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('UNLINK', KEYS[1])
