--- needs: clock
-- Set one field with its time of expiry.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; unused where native
-- ARGV[1]  native   int    1: the server expires fields by itself
-- ARGV[2]  ttl      int    ms
-- ARGV[3]  field    str
-- ARGV[4]  value    str
--
-- Reply: 1 if the field is new, 0 if it was replaced.

local due = now_ms() + tonumber(ARGV[2])
local fresh = redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
if ARGV[1] == '1' then
  redis.call('HPEXPIREAT', KEYS[1], due, 'FIELDS', 1, ARGV[3])
  redis.call('ZREM', KEYS[2], ARGV[3])
else
  redis.call('ZADD', KEYS[2], due, ARGV[3])
end
return fresh
