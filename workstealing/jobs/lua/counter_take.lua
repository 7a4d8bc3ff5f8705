--- needs: clock
-- Take over the batch that is waiting for the sink, or make one.
--
-- KEYS[1]  counters hash   name -> count since its last flush
-- KEYS[2]  taken    hash   name -> count, the batch
-- KEYS[3]  batch    str    id of the batch, while there is one
-- KEYS[4]  lease    str    token of the recruit that flushes
-- ARGV[1]  most     int    upper bound on counters in a batch
-- ARGV[2]  token    str    ours
-- ARGV[3]  lease    int    ms
--
-- Reply: batch id, name, count, name, count, …; a lone 0 if there is nothing to
-- flush, a lone 1 if another recruit flushes.

local holder = redis.call('GET', KEYS[4])
if holder and holder ~= ARGV[2] then return {1} end
local id = redis.call('GET', KEYS[3])
if not id then
  if redis.call('HLEN', KEYS[1]) == 0 then return {0} end
  local names = redis.call('HRANDFIELD', KEYS[1], ARGV[1])
  -- There is none, but a script that has written may write on a full server too.
  redis.call('UNLINK', KEYS[3])
  id = now_ms() .. '-' .. ARGV[2]
  -- What can be refused comes first: then nothing was moved.
  local counted = {}
  for _, name in ipairs(names) do
    local count = redis.call('HGET', KEYS[1], name)
    -- What is no count is not ours: it stays, and keeps the others from nothing.
    if #count <= 20 and string.match(count, '^%-?%d+$') then
      redis.call('HSET', KEYS[2], name, count)
      counted[#counted + 1] = name
    end
  end
  if #counted == 0 then return {0} end
  redis.call('SET', KEYS[3], id)
  for _, name in ipairs(counted) do
    redis.call('HDEL', KEYS[1], name)
  end
end
redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[3])
local reply = {id}
for _, part in ipairs(redis.call('HGETALL', KEYS[2])) do
  reply[#reply + 1] = part
end
return reply
