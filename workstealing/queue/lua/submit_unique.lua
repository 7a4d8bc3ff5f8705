--- needs: clock, wake_workers, wake_for_delayed, put_into_inbox, withdraw, uniques
--- needs: unique_keys, ending, purge
--- needs: enqueue, known_limits
-- Put one task that is unique into the queue, unless another has its unique key; or one
-- whose id is to be used again although a task of that id has ended. Sent twice, it changes
-- nothing the second time and has the same answer.
--
-- KEY task              hash  id -> envelope
-- KEY lock              hash  id -> worker#token
-- KEY done              hash  id -> outcome
-- KEY outcome_times     list  id and when its outcome expires, in the order of their ends
-- KEY purged            hash  id -> how often outcome_times names it that was forgotten
-- KEY later             zset  id -> when it is due
-- KEY dead              zset  id -> when it was given up
-- KEY deque             list  of the worker that holds the other task
-- KEY running           hash  id -> begun at; of that worker
-- KEY loads             zset  worker -> length of its deque
-- KEY cancelling        set      ids whose workers are asked to stop
-- KEY cancelled         hash  id -> how often an inbox names it that was cancelled
-- KEY history           hash  id -> attempts:deaths:steals:events, then failures
-- KEY parked            hash  id -> ability that it waits for
-- KEY parked_for        zset  id -> since when; all that wait for this ability
-- KEY parked_abilities  set      abilities that something is parked for
-- KEY stats             hash  counts
-- KEY awaited           hash  id -> channels to publish its outcome on
-- KEY priorities        hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY control           hash  input_ended
-- KEY bell              list  wake-ups for idle workers
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY uniques           hash  unique key -> id
-- KEY unique_of         hash  id -> how long it is unique, its priority, since when, its key
-- KEY unique_windows    zset  unique key -> when its window ends
-- KEY paused_tasks      hash  id -> its place among those put aside by a pause
-- KEY aside             zset  task name, sequence, id of all that were put aside by a pause
-- KEY turns[3]          zset  line -> its turn; urgent, normal, low
-- KEY ready             zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads             hash  fair key -> its line that has a turn
-- KEY lines             zset  line, sequence, id; of all tasks that wait in lines
-- KEY placed            hash  line -> limit key that it waits for; empty: it is ready
-- KEY blocked           zset  limit key, turn, line; of lines that wait for room
-- KEY permits           hash  limit key -> how many tasks hold a permit
-- KEY permit_holders    hash  id -> limit keys that it holds permits of
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY limits            hash  limit -> its numbers; then those of the code, if others
-- KEY followers         hash  id -> what waits for its end, or needs its outcome
-- KEY steps             hash  id of a step that waits -> how it is put into the queue
-- KEY groups            hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times       zset  group -> when it is forgotten, or given up if it is not all there
-- KEY biographies       hash  id -> events of a task that has ended, as in history
-- ARG id            str
-- ARG envelope      str
-- ARG is_drawn      flag  nobody else can have chosen this id
-- ARG priority      int   0 urgent, 1 normal, 2 low
-- ARG due           int   ms since the epoch; 0: at once
-- ARG delay_ms      int   or else from now; 0: at once
-- ARG longest_ms    int   that replacing it may put it off in all; 0: any time
-- ARG most          int   tasks that the queue holds at most; 0: any number
-- ARG key           str   its unique key; empty: none
-- ARG ends          str   s: the key is free when it is started, d: when it has ended,
--                         w: after a window
-- ARG window_ms     int   of w
-- ARG on_conflict   str   keep, replace or reschedule the other task, if that waits
-- ARG again         flag  a task of this id or key that has ended is no reason to refuse
-- ARG seen          str   the mark of the task of this id that is to be forgotten
-- ARG replaced      str   outcome of the other task, if it is replaced
-- ARG retention_ms  int   that an outcome is kept
-- ARG worker        str   who holds the other task, as last read; empty: nobody
-- ARG needs         str   the ability that it is parked for, as last read; empty: none
-- ARG in_line        str   that it waits in; empty: none
-- ARGS its_limits   str   of the line, name and numbers each
--
-- Reply: 'new'; 'known', id of the other, and 'live' or how that has ended; 'ended' and the
-- mark of the task of this id, to be called with; 'moved' and the id of the other, if
-- another worker holds it or it is parked elsewhere; 'full' or 'input_ended'.

local now = now_ms()
if delay_ms > 0 then due = now + delay_ms end

-- How another task stands in the way: 'live', or how it has ended; nil if it is unknown.
local function standing(other)
  local written, outcome = redis.call('HGET', task, other), redis.call('HGET', done, other)
  if outcome then return ending(outcome, written) end
  if not written then return nil end
  if redis.call('ZSCORE', dead, other) then return 'dead' end
  return 'live', written
end

-- Tell the outcome of a task from that of the next one of this id.
local function ended_mark(ended_id)
  local outcome = redis.call('HGET', done, ended_id)
  return (string.match(string.sub(outcome, -200), '"ended":(%d+)') or '') .. ':' .. #outcome
end

-- Change when a task that waits is due. One that waits for a worker already need not be
-- moved to be run at once.
local function reschedule(other, holder)
  local is_delayed = redis.call('ZSCORE', later, other)
  if due > now then
    if not is_delayed then
      local _, its_priority = read_unique(redis.call('HGET', unique_of, other))
      local has_line = line_in(redis.call('HGET', priorities, other))
      -- One that was replayed is not unique any more; its priority is written down already.
      if its_priority and its_priority ~= 1 and not has_line then
        redis.call('HSET', priorities, other, its_priority)
      end
      withdraw(other, holder)
    end
    redis.call('ZADD', later, due, other)
    wake_for_delayed(1, due)
  elseif is_delayed then
    redis.call('ZREM', later, other)
    put_into_inbox('RPUSH', other)
    wake_workers(1)
  end
end

local state, written = standing(id)
if state then
  if is_drawn or written == envelope then return {'new'} end
  if state == 'live' or not again then return {'known', id, state} end
  -- The mark is when it ended: a caller that asks twice must not forget its own new task.
  local mark = redis.call('ZSCORE', dead, id) or ended_mark(id)
  if mark ~= seen then return {'ended', mark} end
end

local other, other_holder, first = key_holder(key, now), nil, now
if other and is_drawn and other == id then return {'new'} end
local its_state = other and standing(other)
if its_state == 'live' then
  if on_conflict == 'keep' then return {'known', other, 'live'} end
  other_holder = redis.call('HGET', lock, other)
  if (other_holder and string.match(other_holder, '^(.*)#') or '') ~= worker
      or (redis.call('HGET', parked, other) or '') ~= needs then
    return {'moved', other}
  end
  if other_holder and redis.call('HEXISTS', running, other) == 1 then
    return {'known', other, 'live'}
  end
  if on_conflict == 'reschedule' then
    reschedule(other, other_holder)
    return {'known', other, 'live'}
  end
  local _, _, its_first = read_unique(redis.call('HGET', unique_of, other))
  first = its_first or now
elseif other and not again then
  return {'known', other, its_state or 'unknown'}
else
  other = nil
end

if redis.call('HEXISTS', control, 'input_ended') == 1 then return {'input_ended'} end
local fresh = other and 0 or 1
if most > 0 and redis.call('HLEN', task) - redis.call('ZCARD', dead) + fresh > most then
  return {'full'}
end

-- This comes first: a full server refuses it, as long as nothing was removed.
redis.call('HSET', task, id, envelope)
if state then
  if redis.call('ZREM', dead, id) == 1 then
    redis.call('HDEL', done, id)
    redis.call('HINCRBY', stats, 'dropped', 1)
  else
    purge_outcome(id)
  end
  redis.call('HDEL', history, id)
  redis.call('HDEL', priorities, id)
  free_uniques({id}, 'ended')
end
if other then cancel_waiting(other, other_holder, replaced) end
take_key(id, priority, key, ends, window_ms, first, now)
if longest_ms > 0 then due = math.min(due, first + longest_ms) end
if due > now then
  enqueue(id, priority, in_line, due)
  wake_for_delayed(1, due)
else
  enqueue(id, priority, in_line, 0)
  wake_workers(1)
end
know_limits(its_limits_at)
return {'new'}
