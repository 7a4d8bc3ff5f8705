--- needs: stamp
-- Choose by turns what a slice does, and read the time before the table is asked.
--
-- KEY ids    zset  id -> when it was last known to be in the table, ms
-- KEY state  hash  stamp, turn, cursor
-- ARG most  int  upper bound on ids
--
-- Reply: time, cursor, then the ids to ask about; none means that it adds.

local now = stamp(state, 1)
local reply = {now, redis.call('HGET', state, 'cursor') or ''}
if redis.call('HINCRBY', state, 'turn', 1) % 2 == 0 then
  for _, id in ipairs(redis.call('ZRANGE', ids, 0, most - 1)) do
    reply[#reply + 1] = id
  end
end
return reply
