--- needs: clock
-- Server time that never goes back, even when the server's clock does. With *past* 1
-- it is above all that were given before, so that before and after can be distinguished
-- within one millisecond.
local function stamp(state, past)
  local last = tonumber(redis.call('HGET', state, 'stamp') or 0)
  local now = math.max(now_ms(), last + past)
  redis.call('HSET', state, 'stamp', now)
  return now
end
