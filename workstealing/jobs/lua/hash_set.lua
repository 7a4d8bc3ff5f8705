--- needs: clock
-- Set one field with its time of expiry.
--
-- KEY map      hash  field -> value
-- KEY expires  zset  field -> when it expires, ms; of those the server does not
-- ARG native  flag  let the server expire the field, if it can
-- ARG ttl     int   ms
-- ARG field   str
-- ARG value   str
--
-- Reply: 1 if there was no such living field, else 0; 1 if native was kept, else 0.

local now = now_ms()
local due = now + ttl
local old = redis.call('ZSCORE', expires, field)
local fresh = redis.call('HSET', map, field, value)
if old and tonumber(old) <= now then fresh = 1 end
if native then
  local reply = redis.pcall('HPEXPIREAT', map, due, 'FIELDS', 1, field)
  if not reply.err then
    redis.call('ZREM', expires, field)
    return {fresh, 1}
  end
end
redis.call('ZADD', expires, due, field)
return {fresh, 0}
