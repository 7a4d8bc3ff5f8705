--- needs: clock, wake_workers, wake_for_delayed, enqueue, known_limits, first_write
--- needs: unique_keys
-- Fire one tick of a schedule: go on to the next tick, and submit the task of this one.
-- Nothing happens if somebody else has done it, or has changed the schedule. A queue that
-- is full takes it all the same: a schedule submits few. One whose input has ended does
-- not, and the tick is missed; so is one of a unique task while another has its key.
--
-- KEY ticks       zset  schedule -> its next tick
-- KEY schedules   hash  schedule -> definition
-- KEY firings     hash  schedule -> tick:at:fired:missed; the last one, and how many
-- KEY task        hash  id -> envelope
-- KEY done        hash  id -> outcome
-- KEY later       zset  id -> when it is due
-- KEY control     hash  input_ended
-- KEY bell        list  wake-ups for idle workers
-- KEY priorities  hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY turns[3]    zset  line -> its turn; urgent, normal, low
-- KEY ready       zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads       hash  fair key -> its line that has a turn
-- KEY lines       zset  line, sequence, id; of all tasks that wait in lines
-- KEY placed      hash  line -> limit key that it waits for; empty: it is ready
-- KEY limits      hash  limit -> its numbers; then those of the code, if others
-- KEY blocked     zset  limit key, turn, line; of lines that wait for room
-- KEY refills     zset  limit key, or a limit after a tab -> when it has room
-- KEY uniques         hash  unique key -> id
-- KEY unique_of       hash  id -> how long it is unique, its priority, since when, its key
-- KEY unique_windows  zset  unique key -> when its window ends
-- ARG name        str
-- ARG expected    str  the tick that the caller has seen
-- ARG definition  str  that the caller has seen
-- ARG following   int  the tick after this one
-- ARG missed      int  ticks that are passed over
-- ARG tick        int  that is fired; 0: none
-- ARG id          str  of its task
-- ARG envelope    str
-- ARG priority    int  0 urgent, 1 normal, 2 low
-- ARG due         int  ms since the epoch; 0: at once
-- ARG key         str  its unique key; empty: none
-- ARG ends        str  s: the key is free when it is started, d: when it has ended,
--                      w: after a window
-- ARG window_ms   int  of w
-- ARG in_line     str  that it waits in; empty: none
-- ARGS its_limits str  of the line, name and numbers each
--
-- Reply: 'fired', 'passed' if no task was submitted, or 'moved' if nothing was done.

if redis.call('ZSCORE', ticks, name) ~= expected then return 'moved' end
if redis.call('HGET', schedules, name) ~= definition then return 'moved' end
local now = now_ms()
local is_new = tick > 0 and redis.call('HEXISTS', control, 'input_ended') == 0
  and redis.call('HEXISTS', task, id) == 0 and redis.call('HEXISTS', done, id) == 0
  and not key_holder(key, now)
if tick > 0 and not is_new then missed = missed + 1 end
first_write('ZADD', ticks, following, name)
local last, at, fired, before =
  string.match(redis.call('HGET', firings, name) or '', '^(%d+):(%d+):(%d+):(%d+)$')
if is_new then
  -- Its jitter may be over by now.
  if due <= now then due = 0 end
  redis.call('HSET', task, id, envelope)
  take_key(id, priority, key, ends, window_ms, now, now)
  enqueue(id, priority, in_line, due)
  know_limits(its_limits_at)
  if due == 0 then wake_workers(1) else wake_for_delayed(1, due) end
  last, at, fired = string.format('%.0f', tick), string.format('%.0f', now), (fired or 0) + 1
end
redis.call('HSET', firings, name, (last or 0) .. ':' .. (at or 0) .. ':' .. (fired or 0)
  .. ':' .. ((before or 0) + missed))
return is_new and 'fired' or 'passed'
