--- needs: clock
-- Give a living value a new deadline.
--
-- KEY value      str
-- KEY deadlines  zset  name -> when its value dies, ms
-- ARG kind     str  'in': time is a duration; 'at': time is a moment
-- ARG time_ms  int
-- ARG name     str
-- ARGS only    str  at most one: the value that the name must still have
--
-- Reply: 1 if it was done, 0 if there is no such living value.

local now = now_ms()
local old = redis.call('ZSCORE', deadlines, name)
local held = redis.call('GET', value)
if not held or not old or tonumber(old) <= now then return 0 end
if ARGV[only_at] and held ~= ARGV[only_at] then return 0 end
local due = kind == 'in' and now + time_ms or time_ms
redis.call('ZADD', deadlines, due, name)
return 1
