--- needs: clock
-- Set one field with its time of expiry.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; of those the server does not
-- ARGV[1]  native   int    1: let the server expire the field, if it can
-- ARGV[2]  ttl      int    ms
-- ARGV[3]  field    str
-- ARGV[4]  value    str
--
-- Reply: 1 if there was no such living field, else 0; 1 if native was kept, else 0.

local now = now_ms()
local due = now + tonumber(ARGV[2])
local old = redis.call('ZSCORE', KEYS[2], ARGV[3])
local fresh = redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
if old and tonumber(old) <= now then fresh = 1 end
if ARGV[1] == '1' then
  local reply = redis.pcall('HPEXPIREAT', KEYS[1], due, 'FIELDS', 1, ARGV[3])
  if not reply.err then
    redis.call('ZREM', KEYS[2], ARGV[3])
    return {fresh, 1}
  end
end
redis.call('ZADD', KEYS[2], due, ARGV[3])
return {fresh, 0}
