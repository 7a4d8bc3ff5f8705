--- needs: clock, forget_schedule, wake_workers
-- Make the schedules of a process's code known. The newest release decides:
-- * An older release than the newest that has declared changes nothing.
-- * A schedule is written if it is new, or if its code differs from what was declared last;
--   until then, a change by an operator stays.
-- * One of an older release that this release does not have is removed, unless it is to be
--   kept. It comes back, with its tick, if another process of this release has it.
-- * One that an operator removed stays away until a newer release declares it.
--
-- KEY schedules           hash  schedule -> definition
-- KEY ticks               zset  schedule -> its next tick
-- KEY declared_schedules  hash  schedule -> release:keep:timing:digest of its code
-- KEY paused_schedules    hash  schedule -> since
-- KEY removed_schedules   hash  schedule -> release:by:tick:digest of its code
-- KEY control             hash  schedule_release
-- KEY bell                list  wake-ups for idle workers
-- ARG release  int  of the code; 0: not said
-- ARGS values  str  of each schedule: name, digest, timing (a digest, too), keep (1 or 0),
--                   definition, its next tick
--
-- Reply: 'old' if a newer release has declared its schedules, else 'ok'; how many were
-- written; how many were removed.

local newest = tonumber(redis.call('HGET', control, 'schedule_release')) or 0
if release < newest then return {'old', 0, 0} end
local version = string.format('%.0f', release)
local written, removed, is_here = 0, 0, {}
for i = values_at, #ARGV, 6 do
  local name, digest, timing, keep, definition, tick = unpack(ARGV, i, i + 5)
  local by_release, by, its_tick, its_digest =
    string.match(redis.call('HGET', removed_schedules, name) or '', '^(%d+):(%a+):(%d*):(.*)$')
  is_here[name] = true
  if by ~= 'operator' or tonumber(by_release) < release then
    local former_timing, former_digest = string.match(
      redis.call('HGET', declared_schedules, name) or '', '([^:]*):([^:]*)$')
    if former_digest ~= digest or redis.call('HEXISTS', schedules, name) == 0 then
      if by == 'release' and by_release == version and its_digest == digest and its_tick ~= '' then
        tick = its_tick
      end
      -- A tick that is due right now is not lost because an argument has changed.
      local goes_on = former_timing == timing and redis.call('ZSCORE', ticks, name)
      redis.call('HSET', schedules, name, definition)
      if not goes_on and redis.call('HEXISTS', paused_schedules, name) == 0 then
        redis.call('ZADD', ticks, tick, name)
      end
      written = written + 1
    end
    redis.call('HSET', declared_schedules, name,
      version .. ':' .. keep .. ':' .. timing .. ':' .. digest)
    redis.call('HDEL', removed_schedules, name)
  end
end
if release > newest then
  redis.call('HSET', control, 'schedule_release', version)
  local declared = redis.call('HGETALL', declared_schedules)
  for i = 1, #declared, 2 do
    local name = declared[i]
    local its_release, keep, digest = string.match(declared[i + 1], '^(%d+):(%d):.*:(.*)$')
    if not is_here[name] and keep ~= '1' and (tonumber(its_release) or 0) < release then
      local tick = redis.call('ZSCORE', ticks, name) or ''
      redis.call('HSET', removed_schedules, name,
        version .. ':release:' .. tick .. ':' .. (digest or ''))
      forget_schedule(name)
      removed = removed + 1
    end
  end
end
if written > 0 then wake_workers(1) end
return {'ok', written, removed}
