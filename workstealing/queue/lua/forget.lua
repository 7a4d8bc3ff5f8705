--- needs: needed
-- Forget the outcomes of tasks that have ended: their ids are free at once. Dead letters
-- stay, with theirs, and so do outcomes that a step needs.
--
-- KEY done    hash  id -> outcome
-- KEY outbox  zset  id -> when its outcome expires
-- KEY followers  hash  id -> what waits for its end, or needs its outcome
-- KEY task    hash  id -> envelope
-- ARGS ids  str
--
-- Reply: number of outcomes forgotten.

local forgotten, is_any_followed = 0, redis.call('EXISTS', followers) == 1
for i = ids_at, #ARGV do
  local may_go = not is_any_followed or not needed_among({ARGV[i]})[1]
  if may_go and redis.call('ZREM', outbox, ARGV[i]) == 1 then
    redis.call('HDEL', done, ARGV[i])
    if is_any_followed then redis.call('HDEL', followers, ARGV[i]) end
    forgotten = forgotten + 1
  end
end
return forgotten
