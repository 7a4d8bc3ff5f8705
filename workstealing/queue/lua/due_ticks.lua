--- needs: clock
-- Name the schedules whose tick has come, and tell the time.
--
-- KEY ticks      zset  schedule -> its next tick
-- KEY schedules  hash  schedule -> definition
-- ARG most  int  schedules at most; 0: only the time
--
-- Reply: now; then name, tick, definition of each.

local now = now_ms()
local reply = {now}
local due = {}
if most > 0 then
  due = redis.call('ZRANGE', ticks, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
end
for i = 1, #due, 2 do
  local definition = redis.call('HGET', schedules, due[i])
  if definition then
    for _, value in ipairs({due[i], due[i + 1], definition}) do reply[#reply + 1] = value end
  else
    redis.call('ZREM', ticks, due[i])
  end
end
return reply
