--- needs: clock, promote, ring
-- Move delayed tasks whose time has come to their inboxes.
--
-- KEYS[1]  inbox0  list   urgent
-- KEYS[2]  inbox1  list   normal
-- KEYS[3]  inbox2  list   when there is nothing else
-- KEYS[4]  task    hash   id -> envelope
-- KEYS[5]  later   zset   id -> when it is due
-- KEYS[6]  bell    list   wake-ups for idle workers
-- ARGV[1]  most    int    tasks moved at most
--
-- Reply: tasks moved, ms until the next one is due; -1 if none waits.

local now = now_ms()
local moved = promote({KEYS[1], KEYS[2], KEYS[3]}, KEYS[4], KEYS[5], now, ARGV[1])
if moved > 0 then ring(KEYS[6], moved) end
local next_one = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
return {moved, next_one[2] and math.max(0, tonumber(next_one[2]) - now) or -1}
