--- needs: clock
-- Delete living fields, and forget when they were to expire.
--
-- Expired ones are left to the sweep, which calls the hook for them.
--
-- KEY map      hash  field -> value
-- KEY expires  zset  field -> when it expires, ms; of those the server does not
-- ARGS fields  str  which
--
-- Reply: number of fields deleted.

local now = now_ms()
local deleted = 0
for _, field in ipairs(ARGV) do
  local due = redis.call('ZSCORE', expires, field)
  if not due or tonumber(due) > now then
    deleted = deleted + redis.call('HDEL', map, field)
    redis.call('ZREM', expires, field)
  end
end
return deleted
