--- needs: caller
-- Claim upkeep for this worker, if it is overdue. On a queue with nothing in it, and nobody
-- dead, a look at the first lease will do, five times in a row: only then is all of it
-- surveyed. Such a look counts as one of survey.lua, which doubts the clock after a gap.
local function claim_upkeep(is_quiet)
  --- uses: upkeep, workers, upkeep_ms, lease_ms
  local times = redis.call('HMGET', upkeep, 'claimed', 'looked', 'surveyed')
  if now - tonumber(times[1] or 0) <= upkeep_ms then return false end
  local since_look, since_survey = now - tonumber(times[2] or 0), now - tonumber(times[3] or 0)
  if is_quiet and since_look >= 0 and since_look <= math.max(2 * upkeep_ms, lease_ms / 2)
      and since_survey >= 0 and since_survey < 5 * upkeep_ms then
    local first = redis.call('ZRANGE', workers, 0, 0, 'WITHSCORES')[2]
    if first and tonumber(first) > now then
      redis.call('HSET', upkeep, 'claimed', now, 'looked', now)
      return false
    end
  end
  redis.call('HSET', upkeep, 'claimed', now)
  return true
end
