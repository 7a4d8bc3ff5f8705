--- needs: stamp
-- Choose by turns what a slice does, and read the time before the table is asked.
--
-- KEYS[1]  ids      zset   id -> when it was last known to be in the table, ms
-- KEYS[2]  state    hash   stamp, turn, cursor
-- ARGV[1]  most     int    upper bound on ids
--
-- Reply: time, cursor, then the ids to ask about; none means that it adds.

local now = stamp(KEYS[2], 1)
local reply = {now, redis.call('HGET', KEYS[2], 'cursor') or ''}
if redis.call('HINCRBY', KEYS[2], 'turn', 1) % 2 == 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)) do
    reply[#reply + 1] = id
  end
end
return reply
