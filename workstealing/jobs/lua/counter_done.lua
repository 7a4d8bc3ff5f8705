-- Forget a batch that the sink has.
--
-- KEY taken  hash  name -> count, the batch
-- KEY batch  str   id of the batch, while there is one
-- KEY lease  str   token of the recruit that flushes
-- ARG id     str  the batch that the sink has
-- ARG token  str  ours
--
-- Reply: 1 if it was forgotten, 0 if another recruit had done so.

local ours = redis.call('GET', batch) == id
if ours then redis.call('UNLINK', taken, batch) end
if redis.call('GET', lease) == token then redis.call('UNLINK', lease) end
return ours and 1 or 0
