--- needs: clock
-- Remove fields whose time has come, the oldest first.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; of those the server does not
-- ARGV[1]  most     int    upper bound on fields removed, at most 1000
-- ARGV[2]  tell     int    1: the caller wants the fields and their values
--
-- Reply: number of index entries removed, then field, value, … of what was there.

local due = redis.call('ZRANGE', KEYS[2], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, ARGV[1])
local reply = {#due}
if #due == 0 then return reply end
if ARGV[2] == '1' then
  for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(due))) do
    if value then
      reply[#reply + 1] = due[i]
      reply[#reply + 1] = value
    end
  end
end
redis.call('HDEL', KEYS[1], unpack(due))
redis.call('ZREM', KEYS[2], unpack(due))
return reply
