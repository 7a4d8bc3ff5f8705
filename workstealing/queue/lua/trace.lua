--- needs: clock
-- Read all that is known of a task, except from its worker's own keys.
--
-- KEY task          hash  id -> envelope
-- KEY lock          hash  id -> worker#token
-- KEY done          hash  id -> outcome
-- KEY later         zset  id -> when it is due
-- KEY dead          zset  id -> when it was given up
-- KEY parked        hash  id -> ability that it waits for
-- KEY history       hash  id -> attempts:deaths:steals:events, then failures
-- KEY cancelling    set      ids whose workers are asked to stop
-- KEY unique_of     hash  id -> how long it is unique, its priority, since when, its key
-- KEY paused        hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY paused_tasks  hash  id -> its place among those put aside by a pause
-- KEY priorities    hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY steps         hash  id of a step that waits -> how it is put into the queue
-- KEY groups        hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY biographies   hash  id -> events of a task that has ended, as in history
-- ARG id  str
--
-- Reply: now, envelope, lock, outcome, due, given up, ability, history, asked to stop,
-- how it is unique, whether a pause put it aside, pauses as name, since when, …; priority or
-- line; whether it is a step that waits, and the group that it waits for: members left, all,
-- failed, …; its events, if it has ended; an empty string for each that is missing.

return {
  now_ms(),
  redis.call('HGET', task, id) or '',
  redis.call('HGET', lock, id) or '',
  redis.call('HGET', done, id) or '',
  redis.call('ZSCORE', later, id) or '',
  redis.call('ZSCORE', dead, id) or '',
  redis.call('HGET', parked, id) or '',
  redis.call('HGET', history, id) or '',
  redis.call('SISMEMBER', cancelling, id),
  redis.call('HGET', unique_of, id) or '',
  redis.call('HEXISTS', paused_tasks, id),
  redis.call('HGETALL', paused),
  redis.call('HGET', priorities, id) or '',
  redis.call('HEXISTS', steps, id),
  redis.call('HGET', groups, id) or '',
  redis.call('HGET', biographies, id) or '',
}
