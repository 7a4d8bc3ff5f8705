--- needs: clock, ring
-- Give a task that this worker cannot run to one that can: in front of what that one has
-- in its deque, and not counted as an attempt.
--
-- KEYS[1]  running  hash   id -> begun at; of this worker
-- KEYS[2]  deque    list   of the other worker
-- KEYS[3]  lock     hash   id -> worker#token
-- KEYS[4]  workers  zset   worker -> end of its lease
-- KEYS[5]  loads    zset   worker -> length of its deque
-- KEYS[6]  control  hash   token
-- KEYS[7]  stats    hash   counts
-- KEYS[8]  bell     list   wake-ups for idle workers
-- ARGV[1]  id       str
-- ARGV[2]  lock     str    worker#token, as it was given out
-- ARGV[3]  to       str    the other worker
--
-- Reply: 1 if it was handed over; 0 if the other is gone, or the task is no longer this
-- worker's.

if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
local lease = redis.call('ZSCORE', KEYS[4], ARGV[3])
if not lease or tonumber(lease) <= now_ms() then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
local token = redis.call('HINCRBY', KEYS[6], 'token', 1)
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3] .. '#' .. token)
local load = redis.call('LPUSH', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[5], load, ARGV[3])
redis.call('HINCRBY', KEYS[7], 'handed_over', 1)
-- It may be at rest, and the bell wakes just anybody who is.
if load == 1 then ring(KEYS[8], redis.call('ZCARD', KEYS[4])) end
return 1
