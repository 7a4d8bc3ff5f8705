-- Forget the outcomes of tasks that have ended: their ids are free at once. Dead letters
-- stay, with theirs.
--
-- KEY done    hash  id -> outcome
-- KEY outbox  zset  id -> when its outcome expires
-- ARGS ids  str
--
-- Reply: number of outcomes forgotten.

local forgotten = 0
for i = ids_at, #ARGV do
  if redis.call('ZREM', outbox, ARGV[i]) == 1 then
    redis.call('HDEL', done, ARGV[i])
    forgotten = forgotten + 1
  end
end
return forgotten
