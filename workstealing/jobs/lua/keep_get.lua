--- needs: clock
-- Read a value whose deadline has not come.
--
-- KEY value      str
-- KEY deadlines  zset  name -> when its value dies, ms
-- ARG name  str
--
-- Reply: the value, or nil.

local due = redis.call('ZSCORE', deadlines, name)
if not due or tonumber(due) <= now_ms() then return false end
return redis.call('GET', value)
