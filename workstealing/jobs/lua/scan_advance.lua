--- needs: despite_full
-- Move the place of a scan if it is still where the page was read, and count.
-- Counts of a pass are kept under now|…, and under last|… when the pass is over.
--
-- KEY state  hash  turn, place|<node> -> pass:cursor, counts
-- ARG node       str   name
-- ARG place      str   where the page was read
-- ARG following  str   where the next page is
-- ARG over       flag  this page ends a pass
-- ARGS counts    str   name, number, name, number, …
--
-- Reply: 1 if the place was moved, 0 if another recruit did it before.

despite_full(state)
local field = 'place|' .. node
if (redis.call('HGET', state, field) or '0:0') ~= place then return 0 end
redis.call('HSET', state, field, following)
for i = counts_at, #ARGV, 2 do
  local name = node .. '|' .. ARGV[i]
  local sum = redis.call('HINCRBY', state, 'now|' .. name, ARGV[i + 1])
  if over then
    redis.call('HSET', state, 'last|' .. name, sum)
    redis.call('HDEL', state, 'now|' .. name)
  end
end
return 1
