--- needs: clock, count_held_back
-- Count the tasks in each place, and read what else describes a queue.
--
-- KEY inboxes[3]    list  urgent, normal, low
-- KEY task          hash  id -> envelope
-- KEY lock          hash  id -> worker#token
-- KEY done          hash  id -> outcome
-- KEY later         zset  id -> when it is due
-- KEY dead          zset  id -> when it was given up
-- KEY parked        hash  id -> ability that it waits for
-- KEY workers       zset  worker -> end of its lease
-- KEY control       hash  input_ended
-- KEY stats         hash  counts
-- KEY upkeep        hash  duty -> last done at
-- KEY loads         zset  worker -> length of its deque
-- KEY abilities     hash  name@version -> workers that can run it
-- KEY paused        hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY paused_tasks  hash  id -> its place among those put aside by a pause
-- KEY lines         zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]      zset  line -> its turn; urgent, normal, low
-- KEY ready         zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY limits        hash  limit -> its numbers; then those of the code, if others
-- KEY permits       hash  limit key -> how many tasks hold a permit
-- KEY rates         zset  limit key -> when its bucket is full
-- KEY blocked       zset  limit key, turn, line; of lines that wait for room
-- KEY refills       zset  limit key, or a limit after a tab -> when it has room
-- KEY steps         hash  id of a step that waits -> how it is put into the queue
--
-- Reply: now, urgent, normal, low, all tasks, assigned, outcomes, delayed, dead, parked,
-- waiting because of a pause, input ended, in lines, held back by limits (of two thousand
-- lines at most), steps that wait for others; then stats, upkeep, workers with leases, loads,
-- abilities and pauses, each name, value, …

local now, most_lines = now_ms(), 1000
return {
  now,
  redis.call('LLEN', inboxes[1]),
  redis.call('LLEN', inboxes[2]),
  redis.call('LLEN', inboxes[3]),
  redis.call('HLEN', task),
  redis.call('HLEN', lock),
  -- All but those of dead letters.
  math.max(0, redis.call('HLEN', done) - redis.call('ZCARD', dead)),
  redis.call('ZCARD', later),
  redis.call('ZCARD', dead),
  redis.call('HLEN', parked),
  redis.call('HLEN', paused_tasks),
  redis.call('HEXISTS', control, 'input_ended'),
  redis.call('ZCARD', lines),
  count_held_back(now, most_lines),
  redis.call('HLEN', steps),
  redis.call('HGETALL', stats),
  redis.call('HGETALL', upkeep),
  redis.call('ZRANGE', workers, 0, 999, 'WITHSCORES'),
  redis.call('ZRANGE', loads, 0, 999, 'REV', 'WITHSCORES'),
  redis.call('HGETALL', abilities),
  redis.call('HGETALL', paused),
}
