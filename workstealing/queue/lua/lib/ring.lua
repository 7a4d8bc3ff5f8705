-- Wake idle workers. The bell is a hint, so it is short.
local function ring(bell, times)
  for _ = 1, math.min(times, 16 - redis.call('LLEN', bell)) do
    redis.call('RPUSH', bell, 1)
  end
end
