--- needs: clock, expire_outcomes, unique_windows, hand_over
-- Forget outcomes and dead letters that are too old or too many, unique keys whose window is
-- over, rates that are unused, and groups that ended long ago. Give up groups whose producer
-- died before all of it was submitted. What a step still needs is kept.
--
-- KEY done            hash  id -> outcome
-- KEY outcome_times   list  id and when its outcome expires, in the order of their ends
-- KEY purged          hash  id -> how often outcome_times names it that was forgotten
-- KEY dead            zset  id -> when it was given up
-- KEY task            hash  id -> envelope
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY uniques         hash  unique key -> id
-- KEY unique_of       hash  id -> how long it is unique, its priority, since when, its key
-- KEY unique_windows  zset  unique key -> when its window ends
-- KEY rates           zset  limit key -> when its bucket is full
-- KEY stats           hash  counts
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY later           zset  id -> when it is due
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY control         hash  token, sequence, turns
-- KEY awaited         hash  id -> channels to publish its outcome on
-- KEY bell            list  wake-ups for idle workers
-- KEY followers       hash  id -> what waits for its end, or needs its outcome
-- KEY steps           hash  id of a step that waits -> how it is put into the queue
-- KEY groups          hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times     zset  group -> when it is forgotten, or given up if it is not all there
-- KEY biographies     hash  id -> events of a task that has ended, as in history
-- ARG most_outcomes      int  that are kept
-- ARG dead_retention_ms  int  that a dead letter is kept
-- ARG most_dead          int  dead letters that are kept
-- ARG most               int  forgotten at most, of each
--
-- Reply: number of outcomes, dead letters and groups forgotten.

local now = now_ms()
local is_any_followed = redis.call('EXISTS', followers) == 1
local forgotten = expire_outcomes(now, most_outcomes, most, is_any_followed)
expire_windows(now, most)
local old = redis.call('ZRANGE', dead, '-inf', now - dead_retention_ms, 'BYSCORE', 'LIMIT', 0, most)
if #old == 0 then
  local excess = redis.call('ZCARD', dead) - most_dead
  if excess > 0 then old = redis.call('ZRANGE', dead, 0, math.min(excess, most) - 1) end
end
if #old > 0 then
  local gone = old
  if is_any_followed then
    -- Of a letter that a step needs, the outcome stays.
    gone = keep_needed(old, now)
  end
  if #gone > 0 then redis.call('HDEL', done, unpack(gone)) end
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
local over = redis.call('ZRANGE', group_times, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
for _, group in ipairs(over) do
  local left, total = read_group(redis.call('HGET', groups, group))
  redis.call('ZREM', group_times, group)
  redis.call('HDEL', groups, group)
  if left and left > 0 then
    skip_steps(group, 'its group was given up: only a part of its ' .. total
      .. ' members was submitted before the producer died or stopped')
  end
end
return forgotten + #old + #over
