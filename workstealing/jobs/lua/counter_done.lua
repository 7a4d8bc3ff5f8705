-- Forget a batch that the sink has.
--
-- KEYS[1]  taken    hash   name -> count, the batch
-- KEYS[2]  batch    str    id of the batch, while there is one
-- KEYS[3]  lease    str    token of the recruit that flushes
-- ARGV[1]  id       str    the batch that the sink has
-- ARGV[2]  token    str    ours
--
-- Reply: 1 if it was forgotten, 0 if another recruit had done so.

local ours = redis.call('GET', KEYS[2]) == ARGV[1]
if ours then redis.call('UNLINK', KEYS[1], KEYS[2]) end
if redis.call('GET', KEYS[3]) == ARGV[2] then redis.call('UNLINK', KEYS[3]) end
return ours and 1 or 0
