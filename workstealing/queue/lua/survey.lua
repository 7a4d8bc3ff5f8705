--- needs: clock, ring
-- Say what upkeep could do: who is dead, who is rich, which abilities are waited for.
--
-- KEYS[1]  workers   zset   worker -> end of its lease
-- KEYS[2]  loads     zset   worker -> length of its deque
-- KEYS[3]  parkings  set    abilities that something is parked for
-- KEYS[4]  able      hash   name@version -> workers that can run it
-- KEYS[5]  upkeep    hash   duty -> last done at
-- KEYS[6]  later     zset   id -> when it is due
-- KEYS[7]  inbox0    list   urgent
-- KEYS[8]  inbox1    list   normal
-- KEYS[9]  inbox2    list   when there is nothing else
-- KEYS[10] bell      list   wake-ups for idle workers
-- ARGV[1]  most      int    names of each kind
--
-- Reply: now, the dead, the rich, some of the living, abilities to unpark, upkeep as
-- duty, time, …; ms until the next delayed task is due, -1 if none waits.

local now, most = now_ms(), tonumber(ARGV[1])
local dead = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
local rich = redis.call('ZRANGE', KEYS[2], '+inf', 2, 'BYSCORE', 'REV', 'LIMIT', 0, most)
local living = {}
if #rich > 0 then living = redis.call('ZRANDMEMBER', KEYS[1], most) end
local wanted = {}
for _, ability in ipairs(redis.call('SRANDMEMBER', KEYS[3], most)) do
  if redis.call('HEXISTS', KEYS[4], ability) == 1 then wanted[#wanted + 1] = ability end
end
local next_one = redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')
redis.call('HSET', KEYS[5], 'claimed', now)
-- A wake-up may have been lost; another one does no harm.
ring(KEYS[10], redis.call('LLEN', KEYS[7]) + redis.call('LLEN', KEYS[8]) + redis.call('LLEN', KEYS[9]))
return {now, dead, rich, living, wanted, redis.call('HGETALL', KEYS[5]),
  next_one[2] and math.max(0, tonumber(next_one[2]) - now) or -1}
