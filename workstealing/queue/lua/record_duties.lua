--- needs: clock
-- Record that duties were done, and by whom.
--
-- KEY upkeep  hash  duty -> last done at; and who did how many slices
-- KEY stats   hash  counts
-- ARG by       str  who
-- ARGS duties  str  names
--
-- Reply: 1.

local now = now_ms()
for i = duties_at, #ARGV do redis.call('HSET', upkeep, ARGV[i], now) end
redis.call('HINCRBY', stats, 'upkeep:' .. by, 1)
return 1
