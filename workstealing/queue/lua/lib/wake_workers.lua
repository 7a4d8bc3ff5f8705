-- Wake idle workers. The bell is a hint, so it is short.
local function wake_workers(times)
  --- uses: bell
  local most, wake_ups = 16, {}
  for n = 1, math.min(times, most) do wake_ups[n] = '1' end
  if #wake_ups > 0 and redis.call('RPUSH', bell, unpack(wake_ups)) > most then
    redis.call('LTRIM', bell, 0, most - 1)
  end
end
