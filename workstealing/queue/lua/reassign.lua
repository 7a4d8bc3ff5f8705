--- needs: caller, orphans, remove_worker, load, wake_workers
-- Give back the tasks of a dead worker, waiting or running. A worker is dead when its lease
-- has ended; that is checked here, so a worker that came back in time keeps everything. A
-- task is given up if too many workers died running it, or if it was begun and must not
-- run twice.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY workers         zset  worker -> end of its lease
-- KEY members         hash  worker -> incarnation|description
-- KEY loads           zset  worker -> length of its deque
-- KEY deque           list  of the dead worker
-- KEY running         hash  id -> begun at, after ! if it must not come back; of the dead worker
-- KEY abilities       hash  name@version -> workers that can run it
-- KEY stats           hash  counts
-- KEY bell            list  wake-ups for idle workers
-- KEY done            hash  id -> outcome
-- KEY dead            zset  id -> when it was given up
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY cancelling      set      ids whose workers are asked to stop
-- KEY awaited         hash  id -> channels to publish its outcome on
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
-- KEY outcome_times   list  id and when its outcome expires, in the order of their ends
-- KEY later           zset  id -> when it is due
-- KEY followers       hash  id -> what waits for its end, or needs its outcome
-- KEY steps           hash  id of a step that waits -> how it is put into the queue
-- KEY groups          hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times     zset  group -> when it is forgotten, or given up if it is not all there
-- ARG worker       str
-- ARG most         int  tasks given back at most
-- ARG most_deaths  int  that a task may see
-- ARG exhausted    str  outcome of a task that saw as many
-- ARG unknown      str  outcome of a task that must not be run twice
--
-- Reply: -1 if the worker lives, else tasks given back or given up; ids of those that it had
-- taken and that went back; those that were given up: id, name, outcome, …

local lease_end = tonumber(redis.call('ZSCORE', workers, worker))
if lease_end and lease_end > now then return {-1, {}, {}} end
local returned = return_waiting(deque, most, true, lease_end)
local running_returned, back, lost =
  return_running(most - returned, unknown, most_deaths, exhausted, lease_end)
returned = returned + running_returned
if returned > 0 then
  redis.call('HINCRBY', stats, 'reassigned', returned)
  wake_workers(returned)
end
local load = redis.call('LLEN', deque)
record_load(worker, load)
if load + redis.call('HLEN', running) == 0 then remove_worker() end
return {returned, back, lost}
