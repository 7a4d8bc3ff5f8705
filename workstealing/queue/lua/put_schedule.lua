--- needs: wake_workers
-- Write a schedule that was made at run time, or change one.
--
-- KEY schedules           hash  schedule -> definition
-- KEY ticks               zset  schedule -> its next tick
-- KEY declared_schedules  hash  schedule -> release:keep:timing:digest of its code
-- KEY paused_schedules    hash  schedule -> since
-- KEY removed_schedules   hash  schedule -> release:by:tick:digest of its code
-- KEY bell                list  wake-ups for idle workers
-- ARG name        str
-- ARG definition  str
-- ARG expected    str  the definition that is changed; empty: a schedule at run time
-- ARG tick        int  its next tick, if it is new or ticks at other times
-- ARG ticks_anew  flag  it ticks at other times than what is expected
--
-- Reply: 'ok', 'declared' if the code has a schedule of this name, or 'moved' if it is not
-- what was expected.

local former = redis.call('HGET', schedules, name)
if expected == '' then
  if redis.call('HEXISTS', declared_schedules, name) == 1 then return 'declared' end
  if former == definition then return 'ok' end
  ticks_anew = true
elseif former ~= expected then
  return 'moved'
end
redis.call('HSET', schedules, name, definition)
redis.call('HDEL', removed_schedules, name)
if ticks_anew and redis.call('HEXISTS', paused_schedules, name) == 0 then
  redis.call('ZADD', ticks, tick, name)
  wake_workers(1)
end
return 'ok'
