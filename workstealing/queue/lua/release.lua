--- needs: token, give_back, wake_workers
-- Put tasks that were taken but not begun back to the front of the worker's own deque,
-- where thieves reach them. They get a new token, so that the same call, should it arrive
-- again, does not take away a task that the worker has taken since. Tasks of a line go back
-- there, with their permits.
--
-- KEY deque           list  of this worker
-- KEY running         hash  id -> begun at; of this worker
-- KEY lock            hash  id -> worker#token
-- KEY loads           zset  worker -> length of its deque
-- KEY control         hash  token
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY blocked         zset  limit key, turn, line; of lines that wait for room
-- KEY permits         hash  limit key -> how many tasks hold a permit
-- KEY permit_holders  hash  id -> limit keys that it holds permits of
-- KEY refills         zset  limit key, or a limit after a tab -> when it has room
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY bell            list  wake-ups for idle workers
-- ARG worker  str
-- ARGS tasks  str  id, token, id, token, … in the order of the deque
--
-- Reply: number of tasks released.

local mine, released, returned = worker .. '#', 0, 0
for i = #ARGV - 1, tasks_at, -2 do
  local id = ARGV[i]
  if redis.call('HGET', lock, id) == mine .. ARGV[i + 1]
      and redis.call('HDEL', running, id) == 1 then
    if line_in(redis.call('HGET', priorities, id)) then
      give_back(id)
      returned = returned + 1
    else
      redis.call('LPUSH', deque, id)
      redis.call('HSET', lock, id, mine .. new_token())
    end
    released = released + 1
  end
end
if released > 0 then wake_workers(released) end
if released > returned then redis.call('ZADD', loads, redis.call('LLEN', deque), worker) end
return released
