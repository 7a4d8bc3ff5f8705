--- needs: clock
-- Look at a shard from outside: is there something to do, and is anybody there to do it?
--
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY turns[3]          zset  line or fair key -> its turn; urgent, normal, low
-- KEY loads             zset  worker -> length of its deque
-- KEY later             zset  id -> when it is due
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY parked_abilities  set   abilities that something is parked for
-- KEY workers           zset  worker -> end of its lease
-- KEY upkeep            hash  duty -> last done at
-- KEY paused            hash  task name, or * for all -> since when; 0: it is being resumed
-- ARG upkeep_ms  int  after which upkeep is overdue
--
-- Reply: tasks that a worker would find, at least; living workers; 1 if upkeep is overdue;
-- abilities that tasks are parked for, some if they are very many. Who asks knows whether it
-- has one of them; so those who have none, mostly all, send nothing.

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
local claimed = tonumber(redis.call('HGET', upkeep, 'claimed') or 0)
return {waiting, redis.call('ZCOUNT', workers, now, '+inf'),
  (now - claimed > upkeep_ms or claimed > now + upkeep_ms) and 1 or 0, wanted}
