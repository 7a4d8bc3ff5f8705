--- needs: clock, hand_over, known_limits, wake_workers, wake_for_delayed
-- Put up to a thousand steps of a chain or a group into the queue: those that wait for others
-- where they wait, the others as ordinary tasks. A group that has more members comes in several
-- calls; the first one has the steps after the group. If the next call does not come in time,
-- the group is given up. An id that is known is left as it is.
--
-- KEY task         hash  id -> envelope
-- KEY done         hash  id -> outcome
-- KEY outcome_times  list  id and when its outcome expires, in the order of their ends
-- KEY later        zset  id -> when it is due
-- KEY control      hash  input_ended
-- KEY bell         list  wake-ups for idle workers
-- KEY stats        hash  counts
-- KEY awaited      hash  id -> channels to publish its outcome on
-- KEY priorities   hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY inboxes[3]   list  urgent, normal, low
-- KEY dead         zset  id -> when it was given up
-- KEY lines        zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]     zset  line -> its turn; urgent, normal, low
-- KEY ready        zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads        hash  fair key -> its line that has a turn
-- KEY placed       hash  line -> limit key that it waits for; empty: it is ready
-- KEY limits       hash  limit -> its numbers; then those of the code, if others
-- KEY blocked      zset  limit key, turn, line; of lines that wait for room
-- KEY refills      zset  limit key, or a limit after a tab -> when it has room
-- KEY followers    hash  id -> what waits for its end, or needs its outcome
-- KEY steps        hash  id of a step that waits -> how it is put into the queue
-- KEY groups       hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times  zset  group -> when it is forgotten, or given up if it is not all there
-- ARG group         str   empty: a chain
-- ARG members       int   that the group has in all
-- ARG place         int   of this call, from 0
-- ARG is_last       flag
-- ARG whole         int   tasks of all calls
-- ARG most          int   tasks that the queue holds at most; 0: any number
-- ARG patience_ms   int   that the next call may take
-- ARG retention_ms  int   that an outcome is kept; 0: not at all
-- ARG count         int   number of steps in this call
-- ARGS its_steps    str   of each: id, envelope, priority, due, delay in ms, line, what follows
--                         it, and whether it waits; then each limit of the lines, name and numbers
--
-- Reply: 'ok', 'full', 'input_ended', or 'over' if the group was given up.

-- All of a call are known, or none. A group knows which calls have come; a chain is known as
-- long as one of its steps is.
local function is_known()
  for n = 0, count - 1 do
    local i = its_steps_at + 8 * n
    if n > 0 and ARGV[i + 7] ~= '1' then return false end
    for _, key in ipairs({task, done, followers}) do
      if redis.call('HEXISTS', key, ARGV[i]) == 1 then return true end
    end
  end
  return false
end

local left, failed, kept_ms, calls, _
if group ~= '' then
  left, _, failed, kept_ms, calls = read_group(redis.call('HGET', groups, group))
end
if calls and calls > place then return 'ok' end
if place > 0 then
  if calls ~= place then return 'over' end
elseif is_known() then
  return 'ok'
elseif redis.call('HEXISTS', control, 'input_ended') == 1 then
  return 'input_ended'
elseif most > 0 and redis.call('HLEN', task) - redis.call('ZCARD', dead) + whole > most then
  return 'full'
end

local now, woken, delayed, first_due = now_ms(), 0, 0, math.huge
for n = 0, count - 1 do
  local i = its_steps_at + 8 * n
  local id, priority, due = ARGV[i], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local delay_ms, line = tonumber(ARGV[i + 4]), ARGV[i + 5]
  redis.call('HSET', task, id, ARGV[i + 1])
  if ARGV[i + 6] ~= '' then redis.call('HSET', followers, id, ARGV[i + 6]) end
  if ARGV[i + 7] == '1' then
    local how = string.format('%d:%d:%d:%d:', priority, delay_ms, due, retention_ms)
    redis.call('HSET', steps, id, how .. line)
  else
    if delay_ms > 0 then due = now + delay_ms end
    enqueue(id, priority, line, due)
    if due == 0 then
      woken = woken + 1
    else
      delayed, first_due = delayed + 1, math.min(first_due, due)
    end
  end
end
if group ~= '' then
  redis.call('HSET', groups, group, write_group(left or members, members, failed or 0,
    kept_ms or retention_ms, place + 1))
  if not is_last then
    redis.call('ZADD', group_times, now + patience_ms, group)
  elseif place > 0 then
    redis.call('ZREM', group_times, group)
  end
end
know_limits(its_steps_at + 8 * count)
wake_workers(woken)
wake_for_delayed(delayed, first_due)
return 'ok'
