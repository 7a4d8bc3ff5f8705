--- needs: clock, first_write
-- Record that duties were done, and by whom.
--
-- KEY upkeep  hash  duty -> last done at
-- KEY stats   hash  counts
-- ARG by       str  who
-- ARGS duties  str  names
--
-- Reply: 1.

local now = now_ms()
for i = duties_at, #ARGV do first_write('HSET', upkeep, ARGV[i], now) end
first_write('HINCRBY', stats, 'upkeep:' .. by, 1)
return 1
