--- needs: clock
-- Give a living field a new time of expiry.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; of those the server does not
-- ARGV[1]  native   int    1: let the server expire the field, if it can
-- ARGV[2]  ttl      int    ms
-- ARGV[3]  field    str
--
-- Reply: 1 if the field lives, 0 if there is none; 1 if native was kept, else 0.

local now = now_ms()
local due = redis.call('ZSCORE', KEYS[2], ARGV[3])
local there = redis.call('HEXISTS', KEYS[1], ARGV[3])
if there == 0 or (due and tonumber(due) <= now) then return {0, tonumber(ARGV[1])} end
local later = now + tonumber(ARGV[2])
if ARGV[1] == '1' then
  local reply = redis.pcall('HPEXPIREAT', KEYS[1], later, 'FIELDS', 1, ARGV[3])
  if not reply.err then
    redis.call('ZREM', KEYS[2], ARGV[3])
    return {1, 1}
  end
end
-- The server may know an earlier time, from a process that left the expiry to it.
if not due then redis.pcall('HPERSIST', KEYS[1], 'FIELDS', 1, ARGV[3]) end
redis.call('ZADD', KEYS[2], later, ARGV[3])
return {1, 0}
