--- needs: give_back, wake_workers
-- Put a dead letter back into its inbox, with a clean slate; or drop it.
--
-- KEY dead            zset  id -> when it was given up
-- KEY task            hash  id -> envelope
-- KEY done            hash  id -> outcome
-- KEY history         hash  id -> attempts:deaths:steals
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY lock            hash  id -> worker#token
-- KEY bell            list  wake-ups for idle workers
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY control         hash  token, sequence, turns
-- KEY blocked         zset  limit key, turn, line; of lines that wait for room
-- KEY permits         hash  limit key -> how many tasks hold a permit
-- KEY permit_holders  hash  id -> limit keys that it holds permits of
-- KEY refills         zset  limit key -> when it has room for lines that wait
-- ARG id    str
-- ARG drop  flag  forget it for good
--
-- Reply: 1 if it was a dead letter, else 0.

if redis.call('ZREM', dead, id) == 0 then return 0 end
redis.call('HDEL', done, id)
redis.call('HDEL', history, id)
if drop then
  redis.call('HDEL', task, id)
  redis.call('HDEL', priorities, id)
else
  give_back(id)
  wake_workers(1)
end
return 1
