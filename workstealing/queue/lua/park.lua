--- needs: clock, permits, wake_workers
-- Park a task that this worker cannot run until a worker joins that can.
--
-- KEY parked_for        zset  id -> since when; all that wait for this ability
-- KEY parked_abilities  set      abilities that something is parked for
-- KEY parked            hash  id -> ability that it waits for
-- KEY running           hash  id -> begun at; of this worker
-- KEY lock              hash  id -> worker#token
-- KEY lines             zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]          zset  line -> its turn; urgent, normal, low
-- KEY ready             zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads             hash  fair key -> its line that has a turn
-- KEY placed            hash  line -> limit key that it waits for; empty: it is ready
-- KEY control           hash  token, sequence, turns
-- KEY priorities        hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY blocked           zset  limit key, turn, line; of lines that wait for room
-- KEY permits           hash  limit key -> how many tasks hold a permit
-- KEY permit_holders    hash  id -> limit keys that it holds permits of
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY bell              list  wake-ups for idle workers
-- ARG id       str
-- ARG holder   str  worker#token, as it was given out
-- ARG ability  str  name@version
--
-- Reply: 1 if it was parked, 0 if the task is no longer this worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
redis.call('HDEL', lock, id)
redis.call('HDEL', running, id)
return_permits({id})
if unblocked > 0 then wake_workers(unblocked) end
-- In the order in which they were parked, also within a millisecond.
local last = redis.call('ZRANGE', parked_for, -1, -1, 'WITHSCORES')[2]
redis.call('ZADD', parked_for, math.max(now_ms(), tonumber(last or 0) + 1), id)
redis.call('SADD', parked_abilities, ability)
redis.call('HSET', parked, id, ability)
return 1
