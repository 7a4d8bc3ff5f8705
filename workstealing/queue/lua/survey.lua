--- needs: clock, wake_workers, first_write
-- Find work for upkeep: dead workers, rich workers, abilities that parked tasks wait for.
--
-- KEY workers           zset  worker -> end of its lease
-- KEY loads             zset  worker -> length of its deque
-- KEY parked_abilities  set   abilities that something is parked for
-- KEY abilities         hash  name@version -> workers that can run it
-- KEY upkeep            hash  duty -> last done at
-- KEY later             zset  id -> when it is due
-- KEY ticks             zset  schedule -> its next tick
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY bell              list  wake-ups for idle workers
-- KEY paused            hash  task name, or * for all -> since when; 0: it is being resumed
-- ARG most  int  names of each kind
--
-- Reply: now, the dead, the rich, some of the living, abilities to unpark, upkeep as
-- duty, time, …; ms until the next delayed task is due, -1 if none waits; names that are being
-- resumed; how many schedules are due.

local now, waiting = now_ms(), 0
local dead = redis.call('ZRANGE', workers, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
local rich = redis.call('ZRANGE', loads, '+inf', 2, 'BYSCORE', 'REV', 'LIMIT', 0, most)
local living = {}
if #rich > 0 then living = redis.call('ZRANDMEMBER', workers, most) end
local wanted = {}
for _, ability in ipairs(redis.call('SRANDMEMBER', parked_abilities, most)) do
  if redis.call('HEXISTS', abilities, ability) == 1 then wanted[#wanted + 1] = ability end
end
local resuming, pauses = {}, redis.call('HGETALL', paused)
for n = 1, #pauses, 2 do
  if pauses[n + 1] == '0' then resuming[#resuming + 1] = pauses[n] end
end
local next_one = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
first_write('HSET', upkeep, 'claimed', now)
-- A wake-up may have been lost; another one does no harm.
for _, inbox in ipairs(inboxes) do waiting = waiting + redis.call('LLEN', inbox) end
wake_workers(waiting)
return {now, dead, rich, living, wanted, redis.call('HGETALL', upkeep),
  next_one[2] and math.max(0, tonumber(next_one[2]) - now) or -1, resuming,
  redis.call('ZCOUNT', ticks, '-inf', now)}
