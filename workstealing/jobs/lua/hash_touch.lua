--- needs: clock
-- Give a living field a new time of expiry.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms
-- ARGV[1]  native   int    1: the server expires fields by itself
-- ARGV[2]  ttl      int    ms
-- ARGV[3]  field    str
--
-- Reply: 1 if the field lives, 0 if there is none.

local now = now_ms()
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return 0 end
local due = redis.call('ZSCORE', KEYS[2], ARGV[3])
if due and tonumber(due) <= now then return 0 end
local later = now + tonumber(ARGV[2])
if ARGV[1] == '1' then
  redis.call('HPEXPIREAT', KEYS[1], later, 'FIELDS', 1, ARGV[3])
  redis.call('ZREM', KEYS[2], ARGV[3])
else
  redis.call('ZADD', KEYS[2], later, ARGV[3])
end
return 1
