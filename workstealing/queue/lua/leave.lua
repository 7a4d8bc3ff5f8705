--- needs: membership, orphans, remove_worker, load, wake_workers
-- Hand back the tasks of a worker, begun or not, without counting an attempt; then remove
-- the worker. A task that was begun and must not run twice is given up instead. Called
-- again until nothing is left.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY workers         zset  worker -> end of its lease
-- KEY members         hash  worker -> incarnation|description
-- KEY loads           zset  worker -> length of its deque
-- KEY deque           list  of this worker
-- KEY running         hash  id -> begun at, after ! if it must not come back; of this worker
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
-- KEY ticks           zset  schedule -> its next tick
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
-- ARG incarnation  str
-- ARG most         int   tasks handed back at most
-- ARG final        flag  if not, it stays a member and goes on with what it runs
-- ARG unknown      str   outcome of a task that must not be run twice
--
-- Reply: tasks handed back or given up; tasks left; those that were given up: id, name,
-- outcome, …

if not is_member() then return {0, 0, {}} end
local returned = return_waiting(deque, most)
local lost = {}
if final then
  local taken, _, given_up = return_running(most - returned, unknown)
  returned, lost = returned + taken, given_up
end
if returned > 0 then wake_workers(returned) end

local left = redis.call('LLEN', deque)
record_load(worker, left)
if final then
  left = left + redis.call('HLEN', running)
  if left == 0 then
    remove_worker()
    -- It may have been the only one that knew when something is due.
    if redis.call('EXISTS', later, refills, ticks) > 0 then wake_workers(1) end
  end
end
return {returned, left, lost}
