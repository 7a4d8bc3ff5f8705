--- needs: give_back, wake_workers
-- Put a dead letter back into its inbox, with a clean slate; or drop it.
--
-- KEY dead        zset  id -> when it was given up
-- KEY task        hash  id -> envelope
-- KEY done        hash  id -> outcome
-- KEY history     hash  id -> attempts:deaths:steals
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY lock        hash  id -> worker#token
-- KEY bell        list  wake-ups for idle workers
-- KEY priorities  hash  id -> 0 urgent or 2 low; of tasks that left such an inbox
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
