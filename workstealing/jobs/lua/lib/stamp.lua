--- needs: clock
-- Server time that never goes back, even when the server's clock does.
local function stamp(state)
  local last = redis.call('HGET', state, 'stamp')
  local now = math.max(now_ms(), tonumber(last or 0))
  redis.call('HSET', state, 'stamp', now)
  return now
end
