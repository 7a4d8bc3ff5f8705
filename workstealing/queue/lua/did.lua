--- needs: clock
-- Remember that duties were done, by whom, and how much it was.
--
-- KEYS[1]  upkeep   hash   duty -> last done at; and who did how many slices
-- KEYS[2]  stats    hash   counts
-- ARGV[1]  by       str    who
-- ARGV[…]  duties   str    names
--
-- Reply: 1.

local now = now_ms()
for i = 2, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], now) end
redis.call('HINCRBY', KEYS[2], 'upkeep:' .. ARGV[1], 1)
return 1
