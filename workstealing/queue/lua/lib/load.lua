-- Record how long the deque of a worker is; thieves look for those that have something.
local function record_load(name, length)
  --- uses: loads
  if length > 0 then
    redis.call('ZADD', loads, length, name)
  else
    redis.call('ZREM', loads, name)
  end
end
