--- needs: clock, expire_outcomes, unique_windows
-- Forget outcomes and dead letters that are too old or too many, unique keys whose window is
-- over, and rates that are unused.
--
-- KEY done            hash  id -> outcome
-- KEY outbox          zset  id -> when its outcome expires
-- KEY dead            zset  id -> when it was given up
-- KEY task            hash  id -> envelope
-- KEY history         hash  id -> attempts:deaths:steals
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY uniques         hash  unique key -> id
-- KEY unique_of       hash  id -> how long it is unique, its priority, since when, its key
-- KEY unique_windows  zset  unique key -> when its window ends
-- KEY rates           zset  limit key -> when its bucket is full
-- KEY stats           hash  counts
-- ARG most_outcomes      int  that are kept
-- ARG dead_retention_ms  int  that a dead letter is kept
-- ARG most_dead          int  dead letters that are kept
-- ARG most               int  forgotten at most, of each
--
-- Reply: number of outcomes and dead letters forgotten.

local now = now_ms()
local forgotten = expire_outcomes(now, most_outcomes, most)
expire_windows(now, most)
local old = redis.call('ZRANGE', dead, '-inf', now - dead_retention_ms, 'BYSCORE', 'LIMIT', 0, most)
if #old == 0 then
  local excess = redis.call('ZCARD', dead) - most_dead
  if excess > 0 then old = redis.call('ZRANGE', dead, 0, math.min(excess, most) - 1) end
end
if #old > 0 then
  redis.call('HDEL', done, unpack(old))
  redis.call('HDEL', task, unpack(old))
  redis.call('HDEL', history, unpack(old))
  redis.call('HDEL', priorities, unpack(old))
  redis.call('HDEL', unique_of, unpack(old))
  redis.call('ZREM', dead, unpack(old))
  redis.call('HINCRBY', stats, 'forgotten', #old)
end
-- A bucket that is full is like one that was never used.
local full = redis.call('ZRANGE', rates, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
if #full > 0 then redis.call('ZREM', rates, unpack(full)) end
return forgotten + #old
