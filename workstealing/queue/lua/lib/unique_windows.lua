-- Forget unique keys whose window is over.
local function expire_windows(now, most)
  --- uses: uniques, unique_windows
  local over = redis.call('ZRANGE', unique_windows, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  if #over > 0 then
    redis.call('HDEL', uniques, unpack(over))
    redis.call('ZREM', unique_windows, unpack(over))
  end
end
