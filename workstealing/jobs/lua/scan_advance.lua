--- needs: despite_full
-- Move the place of a scan if it is still where the page was read, and count.
-- Counts of a pass are kept under now|…, and under last|… when the pass is over.
--
-- KEYS[1]  state     hash   turn, place|<node> -> pass:cursor, counts
-- ARGV[1]  node      str    name
-- ARGV[2]  place     str    where the page was read
-- ARGV[3]  following str    where the next page is
-- ARGV[4]  over      int    1: this page ends a pass
-- ARGV[…]  counts    str    name, number, name, number, …
--
-- Reply: 1 if the place was moved, 0 if another recruit did it before.

despite_full(KEYS[1])
local place = 'place|' .. ARGV[1]
if (redis.call('HGET', KEYS[1], place) or '0:0') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], place, ARGV[3])
for i = 5, #ARGV, 2 do
  local name = ARGV[1] .. '|' .. ARGV[i]
  local sum = redis.call('HINCRBY', KEYS[1], 'now|' .. name, ARGV[i + 1])
  if ARGV[4] == '1' then
    redis.call('HSET', KEYS[1], 'last|' .. name, sum)
    redis.call('HDEL', KEYS[1], 'now|' .. name)
  end
end
return 1
