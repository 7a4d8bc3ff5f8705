--- needs: publish
-- Make a dead letter of a task whose worker is gone.
local function give_up(id, now, outcome)
  --- uses: lock, history, cancelling, done, dead, stats
  redis.call('HDEL', lock, id)
  redis.call('HDEL', history, id)
  redis.call('SREM', cancelling, id)
  redis.call('HSET', done, id, outcome)
  redis.call('ZADD', dead, now, id)
  redis.call('HINCRBY', stats, 'dead', 1)
  publish(id, outcome)
end
