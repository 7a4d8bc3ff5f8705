-- Wake idle workers. The bell is a hint, so it is short.
local function wake_workers(times)
  --- uses: bell
  local most = 16
  for _ = 1, math.min(times, most) do
    if redis.call('RPUSH', bell, 1) > most then
      redis.call('LPOP', bell)
      return
    end
  end
end
