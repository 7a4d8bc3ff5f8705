--- needs: clock
-- Set one value with its deadline; a key without a TTL is not evicted by volatile-*.
--
-- KEY value      str
-- KEY deadlines  zset  name -> when its value dies, ms
-- ARG kind     str   'in': time is a duration; 'at': time is a moment
-- ARG time_ms  int
-- ARG name     str
-- ARG wanted   str   the value
-- ARG add      flag  leave another living value in place
--
-- Reply: 1 if the name has this value now, 0 if it has another.

local now = now_ms()
local due = kind == 'in' and now + time_ms or time_ms
local old = redis.call('ZSCORE', deadlines, name)
if add and old and tonumber(old) > now then
  local held = redis.call('GET', value)
  if held and held ~= wanted then return 0 end
end
redis.call('ZADD', deadlines, due, name)
redis.call('SET', value, wanted)
return 1
