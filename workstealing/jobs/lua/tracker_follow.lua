--- needs: stamp
-- Add the rows of one page, and move the cursor if nobody else did.
--
-- KEY ids    zset  id -> when it was last known to be in the table, ms
-- KEY state  hash  stamp, turn, cursor
-- ARG after   str  the cursor that the page was read from
-- ARG cursor  str  where the next page begins; empty: at the start
-- ARGS rows   str  ids
--
-- Reply: number of ids that are new, then 1 if another slice has work, else 0.

local now = stamp(state, 0)
local fresh = 0
for i = rows_at, #ARGV do
  fresh = fresh + redis.call('ZADD', ids, now, ARGV[i])
end
if (redis.call('HGET', state, 'cursor') or '') == after then
  redis.call('HSET', state, 'cursor', cursor)
end
local adding = fresh > 0 and cursor ~= ''
redis.call('HSET', state, 'adding', adding and 1 or 0)
local removing = redis.call('HGET', state, 'removing') == '1'
return {fresh, (adding or removing) and 1 or 0}
