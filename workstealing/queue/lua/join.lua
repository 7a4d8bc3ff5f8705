--- needs: caller, abilities, orphans, first_write
-- Register a worker. Another incarnation under its name is taken for dead: its running
-- tasks go back to the inboxes, or are given up if too many workers died running them or
-- if they must not run twice; its deque is inherited. But a worker that was here before does
-- not take its name back from one that began later and lives.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY workers         zset  worker -> end of its lease
-- KEY members         hash  worker -> incarnation|description
-- KEY running         hash  id -> begun at, after ! if it must not come back; of this worker
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY abilities       hash  name@version -> workers that can run it
-- KEY done            hash  id -> outcome
-- KEY dead            zset  id -> when it was given up
-- KEY cancelling      set      ids whose workers are asked to stop
-- KEY stats           hash  counts
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
-- KEY bell            list  wake-ups for idle workers
-- KEY followers       hash  id -> what waits for its end, or needs its outcome
-- KEY steps           hash  id of a step that waits -> how it is put into the queue
-- KEY groups          hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times     zset  group -> when it is forgotten, or given up if it is not all there
-- KEY releases        stream  the last ones that joined: worker, new abilities, release
-- ARG worker       str
-- ARG incarnation  str
-- ARG lease_ms     int
-- ARG description  str  JSON, with its abilities as a list
-- ARG release      str  digest of its abilities
-- ARG since        int  when the worker began, if it was a member before; else 0
-- ARG most_deaths  int  that a task may see
-- ARG exhausted    str  outcome of a task that saw as many
-- ARG unknown      str  outcome of a task that must not be run twice
--
-- Reply: -1 if another one has its name, else running tasks given back or given up; ids of those
-- that went back; those that were given up: id, name, outcome, …

local member = incarnation .. '|' .. description
local former = redis.call('HGET', members, worker)
if since > 0 and former and former ~= member then
  local lease_end = tonumber(redis.call('ZSCORE', workers, worker))
  local began = cjson.decode(string.match(former, '|(.*)$')).since or 0
  if began >= since and lease_end and lease_end > now then return {-1, {}, {}} end
end
first_write('ZADD', workers, now + lease_ms, worker)
if former == member then return {0, {}, {}} end
local returned, back, lost = 0, {}, {}
if former then
  count_abilities(former, -1)
  returned, back, lost = return_running(math.huge, unknown, most_deaths, exhausted)
end
local new = count_abilities(member, 1)
redis.call('HSET', members, worker, member)
-- A release is what can run something that no worker could; the same one that comes back
-- after all were stopped is none.
if #new > 0 then
  local last = redis.call('XREVRANGE', releases, '+', '-', 'COUNT', 1)[1]
  local is_same = false
  for _, field in ipairs(last and last[2] or {}) do is_same = is_same or field == release end
  if not is_same then
    redis.call('XADD', releases, 'MAXLEN', 50, '*', 'worker', worker,
      'new', table.concat(new, '\n', 1, math.min(#new, 20)), 'release', release)
  end
end
return {returned, back, lost}
