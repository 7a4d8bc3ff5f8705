--- needs: history, withdraw, first_write
-- Cancel tasks: at once those that wait, by asking their worker those that run. Ids may stay
-- in an inbox, where they are passed over.
--
-- KEY task              hash  id -> envelope
-- KEY lock              hash  id -> worker#token
-- KEY done              hash  id -> outcome
-- KEY outcome_times     list  id and when its outcome expires, in the order of their ends
-- KEY later             zset  id -> when it is due
-- KEY dead              zset  id -> when it was given up
-- KEY deque             list  of the worker that holds them
-- KEY running           hash  id -> begun at; of the worker that holds them
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
-- KEY bell              list  wake-ups for idle workers
-- KEY uniques           hash  unique key -> id
-- KEY unique_of         hash  id -> how long it is unique, its priority, since when, its key
-- KEY paused_tasks      hash  id -> its place among those put aside by a pause
-- KEY aside             zset  task name, sequence, id of all that were put aside by a pause
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY followers         hash  id -> what waits for its end, or needs its outcome
-- KEY steps             hash  id of a step that waits -> how it is put into the queue
-- KEY groups            hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times       zset  group -> when it is forgotten, or given up if it is not all there
-- KEY biographies       hash  id -> events of a task that has ended, as in history
-- ARG worker        str  their holder, as last read; empty: nobody
-- ARG needs         str  the ability that they are parked for, as last read; empty: none
-- ARG retention_ms  int  that an outcome is kept
-- ARGS outcomes     str  id and its outcome as a cancelled task, one after the other
--
-- Reply: of each 'unknown', 'ended', 'asked' or 'cancelled'; 'moved' if another worker has it,
-- or if it is parked elsewhere.

-- Ask a worker to stop what it runs.
local function ask_to_stop(id, taken_at)
  if first_write('SADD', cancelling, id) == 0 then return end
  local attempts, deaths, steals, failures, events = read_history(redis.call('HGET', history, id))
  events = add_events(add_taken(events, taken_at, worker), {event('c', now_ms())})
  redis.call('HSET', history, id, write_history(attempts, deaths, steals, failures, events))
end

local function cancel(id, outcome)
  if redis.call('HEXISTS', task, id) == 0 then
    return redis.call('HEXISTS', done, id) == 1 and 'ended' or 'unknown'
  end
  if redis.call('ZSCORE', dead, id) then return 'ended' end
  local holder = redis.call('HGET', lock, id)
  if (holder and string.match(holder, '^(.*)#') or '') ~= worker then return 'moved' end
  if (redis.call('HGET', parked, id) or '') ~= needs then return 'moved' end
  local taken_at = holder and redis.call('HGET', running, id)
  if taken_at then
    ask_to_stop(id, taken_at)
    return 'asked'
  end
  cancel_waiting(id, holder, outcome)
  return 'cancelled'
end

local verdicts = {}
for i = outcomes_at, #ARGV, 2 do
  verdicts[#verdicts + 1] = cancel(ARGV[i], ARGV[i + 1])
end
return verdicts
