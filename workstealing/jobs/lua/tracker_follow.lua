--- needs: stamp
-- Add the rows of one page, and move the cursor if nobody else did.
--
-- KEYS[1]  ids      zset   id -> when it was last known to be in the table, ms
-- KEYS[2]  state    hash   stamp, turn, cursor
-- ARGV[1]  after    str    the cursor that the page was read from
-- ARGV[2]  cursor   str    where the next page begins; empty: at the start
-- ARGV[…]  rows     str    ids
--
-- Reply: number of ids that are new, then 1 if another slice has work, else 0.

local now = stamp(KEYS[2], 0)
local fresh = 0
for i = 3, #ARGV do
  fresh = fresh + redis.call('ZADD', KEYS[1], now, ARGV[i])
end
if (redis.call('HGET', KEYS[2], 'cursor') or '') == ARGV[1] then
  redis.call('HSET', KEYS[2], 'cursor', ARGV[2])
end
local adding = fresh > 0 and ARGV[2] ~= ''
redis.call('HSET', KEYS[2], 'adding', adding and 1 or 0)
local removing = redis.call('HGET', KEYS[2], 'removing') == '1'
return {fresh, (adding or removing) and 1 or 0}
