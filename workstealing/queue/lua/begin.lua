--- needs: clock
-- Say that a task which must not be run twice is run now. From then on it does not come
-- back: if its worker dies or leaves, it is given up, for nobody knows what it did.
--
-- KEYS[1]  running  hash   id -> begun at; of this worker
-- KEYS[2]  lock     hash   id -> worker#token
-- ARGV[1]  id       str
-- ARGV[2]  lock     str    worker#token, as it was given out
--
-- Reply: 1 if it may be run, 0 if the task is no longer this worker's.

if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local taken = redis.call('HGET', KEYS[1], ARGV[1])
if not taken then return 0 end
if string.sub(taken, 1, 1) ~= '!' then
  redis.call('HSET', KEYS[1], ARGV[1], '!' .. string.format('%d', now_ms()))
end
return 1
