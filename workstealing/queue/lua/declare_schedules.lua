--- needs: clock, forget_schedule, wake_workers
-- Make the schedules of a process's code known, or say that its release is still at work. The
-- newest release that is at work decides:
-- * An older release changes nothing, until the one that decides was silent for a while: then
--   it was rolled back, and the older one decides.
-- * A schedule is written if it is new, or if its code differs from what was declared last;
--   until then, a change by an operator stays.
-- * One of another release that this release does not have is removed, unless it is to be
--   kept. It comes back, with its tick, if another process of this release has it, or if a
--   rollback brings a release that does.
-- * One that an operator removed stays away until a newer release declares it.
--
-- KEY schedules           hash  schedule -> definition
-- KEY ticks               zset  schedule -> its next tick
-- KEY declared_schedules  hash  schedule -> release:keep:timing:digest of its code
-- KEY paused_schedules    hash  schedule -> since
-- KEY removed_schedules   hash  schedule -> release:by:tick:digest of its code
-- KEY control             hash  schedule_release, when it began to decide, when it spoke last
-- KEY bell                list  wake-ups for idle workers
-- ARG release     int  of the code; 0: not said
-- ARG since       int  when its release began to decide, as it was told when it declared: it only
--                      says that it is at work; 0: it declares
-- ARG silence_ms  int  after which a release is no longer at work
-- ARGS values  str  of each schedule: name, digest, timing (a digest, too), keep (1 or 0),
--                   definition, its next tick
--
-- Reply: 'ok', 'old' if a newer release decides, or 'again' if it is to declare again; how many
-- were written; how many were removed; the release that decided before, and since when the one
-- that does now; the names that are unknown because a newer release decides.

local now, version = now_ms(), string.format('%.0f', release)
local former, its_since, spoke = unpack(redis.call('HMGET', control,
  'schedule_release', 'schedule_release_since', 'schedule_release_spoke'))
local newest = tonumber(former) or 0
if release < newest and now - (tonumber(spoke) or 0) < silence_ms then
  local reply = {'old', 0, 0, former, 0}
  for i = values_at, #ARGV, 6 do
    if redis.call('HEXISTS', schedules, ARGV[i]) == 0 then reply[#reply + 1] = ARGV[i] end
  end
  return reply
end
if since > 0 and (release ~= newest or tonumber(its_since) ~= since) then
  return {'again', 0, 0, newest, 0}
end
if release ~= newest or not its_since then
  its_since = now
  redis.call('HSET', control, 'schedule_release', version, 'schedule_release_since', now)
end
redis.call('HSET', control, 'schedule_release_spoke', now)
if since > 0 then return {'ok', 0, 0, newest, since} end
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
      if by == 'release' and tonumber(by_release) >= release and its_digest == digest
          and its_tick ~= '' then
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
if release > 0 and release ~= newest then
  local declared = redis.call('HGETALL', declared_schedules)
  for i = 1, #declared, 2 do
    local name = declared[i]
    local its_release, keep, digest = string.match(declared[i + 1], '^(%d+):(%d):.*:(.*)$')
    if not is_here[name] and keep ~= '1' and its_release ~= version then
      local tick = redis.call('ZSCORE', ticks, name) or ''
      redis.call('HSET', removed_schedules, name,
        version .. ':release:' .. tick .. ':' .. (digest or ''))
      forget_schedule(name)
      removed = removed + 1
    end
  end
end
if written > 0 then wake_workers(1) end
return {'ok', written, removed, newest, its_since}
