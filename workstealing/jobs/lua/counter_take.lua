--- needs: clock
-- Take over the batch that is waiting for the sink, or make one.
--
-- KEY counters  hash  name -> count since its last flush
-- KEY taken     hash  name -> count, the batch
-- KEY batch     str   id of the batch, while there is one
-- KEY lease     str   token of the recruit that flushes
-- ARG most      int  upper bound on counters in a batch
-- ARG token     str  ours
-- ARG lease_ms  int
--
-- Reply: batch id, name, count, name, count, …; a lone 0 if there is nothing to
-- flush, a lone 1 if another recruit flushes.

local holder = redis.call('GET', lease)
if holder and holder ~= token then return {1} end
local id = redis.call('GET', batch)
if not id then
  if redis.call('HLEN', counters) == 0 then return {0} end
  local names = redis.call('HRANDFIELD', counters, most)
  -- There is none, but a script that has written may write on a full server too.
  redis.call('UNLINK', batch)
  id = now_ms() .. '-' .. token
  -- What can be refused comes first: then nothing was moved.
  local counted = {}
  for _, name in ipairs(names) do
    local count = redis.call('HGET', counters, name)
    -- A value that is not a count is not ours: it stays, and does not stop the others.
    if #count <= 20 and string.match(count, '^%-?%d+$') then
      redis.call('HSET', taken, name, count)
      counted[#counted + 1] = name
    end
  end
  if #counted == 0 then return {0} end
  redis.call('SET', batch, id)
  for _, name in ipairs(counted) do
    redis.call('HDEL', counters, name)
  end
end
redis.call('SET', lease, token, 'PX', lease_ms)
local reply = {id}
for _, part in ipairs(redis.call('HGETALL', taken)) do
  reply[#reply + 1] = part
end
return reply
