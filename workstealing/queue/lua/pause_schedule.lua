--- needs: clock, wake_workers
-- Pause a schedule, or let it go on from its next tick.
--
-- KEY schedules          hash  schedule -> definition
-- KEY ticks              zset  schedule -> its next tick
-- KEY paused_schedules   hash  schedule -> since
-- KEY removed_schedules  hash  schedule -> release:by:tick:digest of its code
-- KEY bell               list  wake-ups for idle workers
-- ARG name    str
-- ARG resume  flag
-- ARG tick    int  the next one, to resume
--
-- Reply: 'ok', 'already' if it was so before, 'unknown', or 'removed' if it was removed: to
-- resume it lets the code declare it again.

if redis.call('HEXISTS', schedules, name) == 0 then
  if redis.call('HEXISTS', removed_schedules, name) == 0 then return 'unknown' end
  if resume then redis.call('HDEL', removed_schedules, name) end
  return 'removed'
end
if resume then
  if redis.call('HDEL', paused_schedules, name) == 0 then return 'already' end
  redis.call('ZADD', ticks, tick, name)
  wake_workers(1)
  return 'ok'
end
if redis.call('HSETNX', paused_schedules, name, now_ms()) == 0 then return 'already' end
redis.call('ZREM', ticks, name)
return 'ok'
