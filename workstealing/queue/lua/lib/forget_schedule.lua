-- Forget a schedule, all but what it has fired.
local function forget_schedule(name)
  --- uses: schedules, ticks, declared_schedules
  redis.call('HDEL', schedules, name)
  redis.call('ZREM', ticks, name)
  redis.call('HDEL', declared_schedules, name)
end
