-- Delete fields, and forget when they were to expire.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms
-- ARGV[…]  fields   str    which
--
-- Reply: number of fields deleted.

local deleted = 0
for _, field in ipairs(ARGV) do
  deleted = deleted + redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', KEYS[2], field)
end
return deleted
