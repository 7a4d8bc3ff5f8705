--- needs: clock, first_write
-- Record that a task that must not run twice has begun. From now on it is not given back:
-- if its worker dies or leaves, it is given up, for nobody knows what it did.
--
-- KEY running  hash  id -> begun at; of this worker
-- KEY lock     hash  id -> worker#token
-- ARG id      str
-- ARG holder  str  worker#token, as it was given out
--
-- Reply: 1 if it may be run, 0 if the task is no longer this worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
local begun = redis.call('HGET', running, id)
if not begun then return 0 end
if string.sub(begun, 1, 1) ~= '!' then
  first_write('HSET', running, id, '!' .. string.format('%d', now_ms()))
end
return 1
