--- needs: clock
-- Remove fields whose time has come, the oldest first.
--
-- KEY map      hash  field -> value
-- KEY expires  zset  field -> when it expires, ms; of those the server does not
-- ARG most  int   upper bound on fields removed, at most 1000
-- ARG has_hook  flag  the caller wants the fields and their values
--
-- Reply: number of index entries removed, then field, value, … of what was there.

local due = redis.call('ZRANGE', expires, '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, most)
local reply = {#due}
if #due == 0 then return reply end
if has_hook then
  for i, value in ipairs(redis.call('HMGET', map, unpack(due))) do
    if value then
      reply[#reply + 1] = due[i]
      reply[#reply + 1] = value
    end
  end
end
redis.call('HDEL', map, unpack(due))
redis.call('ZREM', expires, unpack(due))
return reply
