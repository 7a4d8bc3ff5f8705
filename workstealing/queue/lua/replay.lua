--- needs: clock, give_back, wake_workers, uniques, needed, hand_over, history
-- Put a dead letter back into its inbox, with a clean slate: all that is noted is since when it
-- waits again. Or drop it. A group waits for a member that is replayed, unless the step after it
-- has begun.
--
-- KEY dead            zset  id -> when it was given up
-- KEY task            hash  id -> envelope
-- KEY done            hash  id -> outcome
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY lock            hash  id -> worker#token
-- KEY bell            list  wake-ups for idle workers
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY control         hash  token, sequence, turns
-- KEY blocked         zset  limit key, turn, line; of lines that wait for room
-- KEY permits         hash  limit key -> how many tasks hold a permit
-- KEY permit_holders  hash  id -> limit keys that it holds permits of
-- KEY refills         zset  limit key, or a limit after a tab -> when it has room
-- KEY uniques         hash  unique key -> id
-- KEY unique_of       hash  id -> how long it is unique, its priority, since when, its key
-- KEY unique_windows  zset  unique key -> when its window ends
-- KEY followers       hash  id -> what waits for its end, or needs its outcome
-- KEY steps           hash  id of a step that waits -> how it is put into the queue
-- KEY groups          hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY outcome_times   list  id and when its outcome expires, in the order of their ends
-- KEY later           zset  id -> when it is due
-- KEY awaited         hash  id -> channels to publish its outcome on
-- KEY stats           hash  counts
-- KEY group_times     zset  group -> when it is forgotten, or given up if it is not all there
-- ARG id    str
-- ARG drop  flag  forget it for good
--
-- Reply: 1 if it was a dead letter, else 0; or the id of the task that has its unique key.

if not redis.call('ZSCORE', dead, id) then return 0 end
local _, _, _, key = read_unique(redis.call('HGET', unique_of, id))
local other = key and redis.call('HGET', uniques, key)
if other and not drop and redis.call('HEXISTS', unique_of, other) == 1 then return other end
redis.call('ZREM', dead, id)
local mark = redis.call('HGET', followers, id)
if mark and drop then
  if #keep_needed({id}, now_ms()) > 0 then redis.call('HDEL', done, id) end
else
  redis.call('HDEL', done, id)
end
local group = mark and not drop and string.sub(mark, 2)
if group and redis.call('HEXISTS', steps, group) == 1 then
  local left, total, failed, kept_ms, calls = read_group(redis.call('HGET', groups, group))
  if left then
    redis.call('HSET', followers, id, 'g' .. group)
    local row = write_group(left + 1, total, failed - 1, kept_ms, calls)
    redis.call('HSET', groups, group, row)
  end
end
if drop then
  redis.call('HDEL', history, id)
  redis.call('HDEL', task, id)
  redis.call('HINCRBY', stats, 'dropped', 1)
  redis.call('HDEL', priorities, id)
  redis.call('HDEL', unique_of, id)
else
  if key then
    redis.call('HSET', uniques, key, id)
    redis.call('ZREM', unique_windows, key)
  end
  redis.call('HSET', history, id, write_history(0, 0, 0, '', event('v', now_ms())))
  give_back(id)
  wake_workers(1)
end
return 1
