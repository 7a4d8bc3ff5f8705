--- needs: clock
-- Delete living fields, and forget when they were to expire.
--
-- Expired ones are left to the sweep, which has to tell of them.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; of those the server does not
-- ARGV[…]  fields   str    which
--
-- Reply: number of fields deleted.

local now = now_ms()
local deleted = 0
for _, field in ipairs(ARGV) do
  local due = redis.call('ZSCORE', KEYS[2], field)
  if not due or tonumber(due) > now then
    deleted = deleted + redis.call('HDEL', KEYS[1], field)
    redis.call('ZREM', KEYS[2], field)
  end
end
return deleted
