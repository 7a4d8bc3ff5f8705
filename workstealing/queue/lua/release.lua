--- needs: token
-- Put tasks that were taken but not begun back to the front of the worker's own deque,
-- where thieves reach them. They get a new token, so that the same call, should it arrive
-- again, does not take away a task that the worker has taken since.
--
-- KEY deque    list  of this worker
-- KEY running  hash  id -> begun at; of this worker
-- KEY lock     hash  id -> worker#token
-- KEY loads    zset  worker -> length of its deque
-- KEY control  hash  token
-- ARG worker  str
-- ARGS tasks  str  id, token, id, token, … in the order of the deque
--
-- Reply: number of tasks released.

local mine, released = worker .. '#', 0
for i = #ARGV - 1, tasks_at, -2 do
  local id = ARGV[i]
  if redis.call('HGET', lock, id) == mine .. ARGV[i + 1]
      and redis.call('HDEL', running, id) == 1 then
    redis.call('LPUSH', deque, id)
    redis.call('HSET', lock, id, mine .. new_token())
    released = released + 1
  end
end
if released > 0 then redis.call('ZADD', loads, redis.call('LLEN', deque), worker) end
return released
