--- needs: forget_schedule
-- Remove a schedule. One that code declares leaves a mark, so that this code, and all that
-- is older, does not bring it back.
--
-- KEY schedules           hash  schedule -> definition
-- KEY ticks               zset  schedule -> its next tick
-- KEY firings             hash  schedule -> tick:at:fired:missed
-- KEY declared_schedules  hash  schedule -> release:keep:timing:digest of its code
-- KEY paused_schedules    hash  schedule -> since
-- KEY removed_schedules   hash  schedule -> release:by:tick:digest of its code
-- KEY control             hash  schedule_release
-- ARG name  str
--
-- Reply: 1 if it was there, else 0.

if redis.call('HEXISTS', schedules, name) == 0 then return 0 end
if redis.call('HEXISTS', declared_schedules, name) == 1 then
  local newest = redis.call('HGET', control, 'schedule_release') or '0'
  redis.call('HSET', removed_schedules, name, newest .. ':operator::')
end
forget_schedule(name)
redis.call('HDEL', firings, name)
redis.call('HDEL', paused_schedules, name)
return 1
