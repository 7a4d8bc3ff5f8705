-- Record the length of a worker's deque; thieves look for deques that are not empty.
local function record_load(name, length)
  --- uses: loads
  if length > 0 then
    redis.call('ZADD', loads, length, name)
  else
    redis.call('ZREM', loads, name)
  end
end
