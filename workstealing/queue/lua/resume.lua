--- needs: clock, history, put_into_inbox, wake_workers
-- Resume a task name, or all of a queue, and bring tasks of that name that were put aside
-- back to the front of their inboxes or lines. Called again while it has more: the last come
-- first, so that the order is kept. Until then its pause reads 0, and upkeep goes on if need be.
--
-- KEY paused        hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY paused_tasks  hash  id -> its place among those put aside by a pause
-- KEY aside         zset  task name, sequence, id of all that were put aside by a pause
-- KEY inboxes[3]    list  urgent, normal, low
-- KEY priorities    hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY bell          list  wake-ups for idle workers
-- KEY control       hash  token
-- KEY turns[3]      zset  line -> its turn; urgent, normal, low
-- KEY ready         zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads         hash  fair key -> its line that has a turn
-- KEY lines         zset  line, sequence, id; of all tasks that wait in lines
-- KEY placed        hash  line -> limit key that it waits for; empty: it is ready
-- KEY history       hash  id -> attempts:deaths:steals:events, then failures
-- ARG name     str   of the tasks; * for all
-- ARG most     int   tasks moved at most
-- ARG goes_on  flag  only if it is being resumed, and was not paused again meanwhile
--
-- Reply: since when it was paused, 0 if it was not; tasks moved; 1 if there may be more.

local since = redis.call('HGET', paused, name)
if not since or goes_on and since ~= '0' then return {0, 0, 0} end
if name == '*' then
  redis.call('HDEL', paused, name)
  wake_workers(math.huge)
  return {tonumber(since), 0, 0}
end

local members = redis.call('ZRANGE', aside, '(' .. name .. '\1', '[' .. name .. '\0', 'BYLEX', 'REV',
  'LIMIT', 0, most)
local ids = {}
-- Behind the name there are a \0, a sequence of 16 digits and another \0.
for n, member in ipairs(members) do ids[n] = string.sub(member, #name + 19) end
if #ids > 0 then
  redis.call('ZREM', aside, unpack(members))
  redis.call('HDEL', paused_tasks, unpack(ids))
  for _, id in ipairs(ids) do put_into_inbox('LPUSH', id) end
  note_events(ids, {event('r', now_ms())})
end
if #ids < most then
  redis.call('HDEL', paused, name)
else
  redis.call('HSET', paused, name, '0')
end
-- Also without any: those that wait in inboxes and deques may run again.
wake_workers(math.huge)
return {tonumber(since), #ids, #ids < most and 0 or 1}
