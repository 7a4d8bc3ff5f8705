--- needs: clock, history, give_back, wake_workers
-- Give parked tasks back to their inboxes if a worker, or the caller, can run them now.
--
-- KEY parked_for        zset  id -> since when; all that wait for this ability
-- KEY parked_abilities  set      abilities that something is parked for
-- KEY parked            hash  id -> ability that it waits for
-- KEY abilities         hash  name@version -> workers that can run it
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY task              hash  id -> envelope
-- KEY lock              hash  id -> worker#token
-- KEY bell              list  wake-ups for idle workers
-- KEY priorities        hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY lines             zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]          zset  line -> its turn; urgent, normal, low
-- KEY ready             zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads             hash  fair key -> its line that has a turn
-- KEY placed            hash  line -> limit key that it waits for; empty: it is ready
-- KEY control           hash  token, sequence, turns
-- KEY blocked           zset  limit key, turn, line; of lines that wait for room
-- KEY permits           hash  limit key -> how many tasks hold a permit
-- KEY permit_holders    hash  id -> limit keys that it holds permits of
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY history           hash  id -> attempts:deaths:steals:events, then failures
-- ARG ability  str  name@version
-- ARG most     int  tasks given back at most
-- ARG is_able  flag  the caller can run them, even if no worker can
--
-- Reply: number of tasks given back.

if redis.call('ZCARD', parked_for) == 0 then
  redis.call('SREM', parked_abilities, ability)
  return 0
end
if not is_able and redis.call('HEXISTS', abilities, ability) == 0 then return 0 end
local latest = redis.call('ZPOPMAX', parked_for, most)
local returned, now = 0, now_ms()
for n = 1, #latest, 2 do
  local id = latest[n]
  if redis.call('HDEL', parked, id) == 1 then
    if give_back(id) then
      note_events({id}, {event('p', tonumber(latest[n + 1])), event('b', now)})
    end
    returned = returned + 1
  end
end
if returned > 0 then wake_workers(returned) end
if redis.call('ZCARD', parked_for) == 0 then redis.call('SREM', parked_abilities, ability) end
return returned
