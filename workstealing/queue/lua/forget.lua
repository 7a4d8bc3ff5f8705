--- needs: needed, purge
-- Forget the outcomes of tasks that have ended: their ids are free at once. Dead letters
-- stay, with theirs, and so do outcomes that a step needs.
--
-- KEY done           hash  id -> outcome
-- KEY dead           zset  id -> when it was given up
-- KEY outcome_times  list  id and when its outcome expires, in the order of their ends
-- KEY purged         hash  id -> how often outcome_times names it that was forgotten
-- KEY followers      hash  id -> what waits for its end, or needs its outcome
-- KEY task           hash  id -> envelope
-- KEY biographies    hash  id -> events of a task that has ended, as in history
-- ARGS ids  str
--
-- Reply: number of outcomes forgotten.

local forgotten, is_any_followed = 0, redis.call('EXISTS', followers) == 1
for i = ids_at, #ARGV do
  local id = ARGV[i]
  local may_go = redis.call('HEXISTS', done, id) == 1 and not redis.call('ZSCORE', dead, id)
  if may_go and is_any_followed then may_go = not needed_among({id})[1] end
  if may_go then
    purge_outcome(id)
    if is_any_followed then redis.call('HDEL', followers, id) end
    forgotten = forgotten + 1
  end
end
if forgotten > 0 then trim_outcome_times() end
return forgotten
