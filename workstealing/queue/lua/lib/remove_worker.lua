--- needs: abilities
-- Remove a worker, with all that is counted for it.
local function remove_worker()
  --- uses: worker, workers, members, loads, stats
  local member = redis.call('HGET', members, worker)
  if member then count_abilities(member, -1) end
  redis.call('HDEL', members, worker)
  redis.call('ZREM', workers, worker)
  redis.call('ZREM', loads, worker)
  redis.call('HDEL', stats, 'stolen:' .. worker)
end
