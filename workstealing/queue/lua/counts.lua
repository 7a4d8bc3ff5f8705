--- needs: clock
-- Count what is where.
--
-- KEYS[1]   inbox0   list   urgent
-- KEYS[2]   inbox1   list   normal
-- KEYS[3]   inbox2   list   when there is nothing else
-- KEYS[4]   task     hash   id -> envelope
-- KEYS[5]   lock     hash   id -> worker#token
-- KEYS[6]   outbox   zset   id -> when its outcome expires
-- KEYS[7]   later    zset   id -> when it is due
-- KEYS[8]   dead     zset   id -> when it was given up
-- KEYS[9]   needs    hash   id -> ability it waits for
-- KEYS[10]  workers  zset   worker -> end of its lease
-- KEYS[11]  control  hash   closed
-- KEYS[12]  stats    hash   counts
-- KEYS[13]  upkeep   hash   duty -> last done at
-- KEYS[14]  loads    zset   worker -> length of its deque
-- KEYS[15]  able     hash   name@version -> workers that can run it
--
-- Reply: now, urgent, normal, low, all tasks, assigned, outcomes, delayed, dead, parked,
-- closed; then stats, upkeep, workers with leases, loads and abilities, each name,
-- value, …

return {
  now_ms(),
  redis.call('LLEN', KEYS[1]),
  redis.call('LLEN', KEYS[2]),
  redis.call('LLEN', KEYS[3]),
  redis.call('HLEN', KEYS[4]),
  redis.call('HLEN', KEYS[5]),
  redis.call('ZCARD', KEYS[6]),
  redis.call('ZCARD', KEYS[7]),
  redis.call('ZCARD', KEYS[8]),
  redis.call('HLEN', KEYS[9]),
  redis.call('HEXISTS', KEYS[11], 'closed'),
  redis.call('HGETALL', KEYS[12]),
  redis.call('HGETALL', KEYS[13]),
  redis.call('ZRANGE', KEYS[10], 0, 999, 'WITHSCORES'),
  redis.call('ZRANGE', KEYS[14], 0, 999, 'WITHSCORES'),
  redis.call('HGETALL', KEYS[15]),
}
