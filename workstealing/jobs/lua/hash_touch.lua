--- needs: clock
-- Give a living field a new time of expiry.
--
-- KEY map      hash  field -> value
-- KEY expires  zset  field -> when it expires, ms; of those the server does not
-- ARG native  flag  let the server expire the field, if it can
-- ARG ttl     int   ms
-- ARG field   str
--
-- Reply: 1 if the field lives, 0 if there is none; 1 if native was kept, else 0.

local now = now_ms()
local due = redis.call('ZSCORE', expires, field)
local there = redis.call('HEXISTS', map, field)
if there == 0 or (due and tonumber(due) <= now) then return {0, native and 1 or 0} end
local later = now + ttl
if native then
  local reply = redis.pcall('HPEXPIREAT', map, later, 'FIELDS', 1, field)
  if not reply.err then
    redis.call('ZREM', expires, field)
    return {1, 1}
  end
end
-- The server may know an earlier time, from a process that left the expiry to it.
if not due then redis.pcall('HPERSIST', map, 'FIELDS', 1, field) end
redis.call('ZADD', expires, later, field)
return {1, 0}
