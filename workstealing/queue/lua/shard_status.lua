--- needs: clock, number_living
-- Look at a shard from outside: is there something to do, and is anybody there to do it?
--
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY turns[3]          zset  line -> its turn; urgent, normal, low
-- KEY loads             zset  worker -> length of its deque
-- KEY later             zset  id -> when it is due
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY parked_abilities  set   abilities that something is parked for
-- KEY ticks             zset  schedule -> its next tick
-- KEY workers           zset  worker -> end of its lease
-- KEY members           hash  worker -> incarnation|description
-- KEY upkeep            hash  duty -> last done at
-- KEY paused            hash  task name, or * for all -> since when; 0: it is being resumed
-- ARG upkeep_ms  int  after which upkeep is overdue
--
-- Reply: tasks that a worker would find, at least; living workers; 1 if upkeep is overdue;
-- abilities that tasks are parked for, some if they are very many; ticks that are due; ms until
-- the next one, -1 if there is none. Who asks knows whether it has one of the abilities: so
-- nobody has to send what it has.

local now, most_loads, most_abilities, waiting, wanted = now_ms(), 10, 100, 0, {}
if redis.call('HEXISTS', paused, '*') == 0 then
  for _, inbox in ipairs(inboxes) do waiting = waiting + redis.call('LLEN', inbox) end
  for _, key in ipairs(turns) do waiting = waiting + redis.call('ZCARD', key) end
  local rich = redis.call('ZRANGE', loads, 0, most_loads - 1, 'REV', 'WITHSCORES')
  for n = 2, #rich, 2 do waiting = waiting + tonumber(rich[n]) end
  for _, key in ipairs({later, refills}) do
    waiting = waiting + redis.call('ZCOUNT', key, '-inf', now)
  end
  wanted = redis.call('SRANDMEMBER', parked_abilities, most_abilities)
end
local due_ticks, next_tick = 0, redis.call('ZRANGE', ticks, 0, 0, 'WITHSCORES')[2]
if next_tick and tonumber(next_tick) <= now then
  -- What is due may be what nobody can fire, and stay so.
  due_ticks = redis.call('ZCOUNT', ticks, '-inf', now)
  next_tick = redis.call('ZRANGE', ticks, due_ticks, due_ticks, 'WITHSCORES')[2]
end
local claimed = tonumber(redis.call('HGET', upkeep, 'claimed') or 0)
return {waiting, number_living(now),
  (now - claimed > upkeep_ms or claimed > now + upkeep_ms) and 1 or 0, wanted,
  due_ticks, next_tick and math.ceil(next_tick - now) or -1}
