--- needs: clock
-- Delete a living value and its deadline.
--
-- KEY value      str
-- KEY deadlines  zset  name -> when its value dies, ms
-- ARG name   str
-- ARGS only  str  at most one: the value that the name must still have
--
-- Reply: 1 if it was done, 0 if there is no such living value.

local due = redis.call('ZSCORE', deadlines, name)
if not due or tonumber(due) <= now_ms() then return 0 end
if ARGV[only_at] and redis.call('GET', value) ~= ARGV[only_at] then return 0 end
redis.call('ZREM', deadlines, name)
return redis.call('UNLINK', value)
