--- needs: tell
-- Make a dead letter of a task that died with its workers.
local function give_up(id, now, outcome, at)
  redis.call('HDEL', at.lock, id)
  redis.call('HDEL', at.history, id)
  redis.call('SREM', at.cancels, id)
  redis.call('HSET', at.done, id, outcome)
  redis.call('ZADD', at.dead, now, id)
  redis.call('HINCRBY', at.stats, 'dead', 1)
  tell(at.awaited, id, outcome)
end
