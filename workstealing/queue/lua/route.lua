--- needs: clock, token, wake_workers
-- Move a task that this worker cannot run to the front of the deque of a worker that can,
-- without counting an attempt.
--
-- KEY running  hash  id -> begun at; of this worker
-- KEY deque    list  of the other worker
-- KEY lock     hash  id -> worker#token
-- KEY workers  zset  worker -> end of its lease
-- KEY loads    zset  worker -> length of its deque
-- KEY control  hash  token
-- KEY stats    hash  counts
-- KEY bell     list  wake-ups for idle workers
-- ARG id      str
-- ARG holder  str  worker#token, as it was given out
-- ARG to      str  the other worker
--
-- Reply: 1 if it was routed; 0 if the other is gone, or the task is no longer this
-- worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
local lease_end = redis.call('ZSCORE', workers, to)
if not lease_end or tonumber(lease_end) <= now_ms() then return 0 end
redis.call('HDEL', running, id)
redis.call('HSET', lock, id, to .. '#' .. new_token())
local load = redis.call('LPUSH', deque, id)
redis.call('ZADD', loads, load, to)
redis.call('HINCRBY', stats, 'routed', 1)
-- That worker may be at rest, and the bell wakes any worker that is.
if load == 1 then wake_workers(redis.call('ZCARD', workers)) end
return 1
