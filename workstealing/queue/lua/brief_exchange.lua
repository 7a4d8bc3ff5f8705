--- needs: unusual, caller, orphans, settle, suspects, paused, take, history, envelope_name
--- needs: first_write, wake_workers
--- needs rarely: promote, load
-- The exchange of a process that runs short tasks in a spare moment: deliver its reports, and
-- take one task that fits. It comes from the front of an inbox, or from the back of the deque
-- of a worker that has many. The process is known by its lease alone: it is no member, has no
-- deque, and gets no share of the inboxes. If it dies, upkeep treats it as a dead worker.
--
-- Tasks that wait in lines, for limits or for fairness, are left to workers.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY done            hash  id -> outcome
-- KEY outcome_times   list  id and when its outcome expires, in the order of their ends
-- KEY outbox          zset  id -> when its outcome expires; of former releases
-- KEY purged          hash  id -> how often outcome_times names it that was forgotten
-- KEY later           zset  id -> when it is due
-- KEY dead            zset  id -> when it was given up
-- KEY workers         zset  worker -> end of its lease
-- KEY loads           zset  worker -> length of its deque
-- KEY victim_deque    list  of the worker that it may steal from
-- KEY running         hash  id -> begun at; of this worker
-- KEY control         hash  token
-- KEY stats           hash  counts
-- KEY history         hash  id -> attempts:deaths:steals
-- KEY cancelling      set      ids whose workers are asked to stop
-- KEY cancelled       hash  id -> how often an inbox names it that was cancelled
-- KEY parked          hash  id -> ability that it waits for
-- KEY awaited         hash  id -> channels to publish its outcome on
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY blocked         zset  limit key, turn, line; of lines that wait for room
-- KEY permits         hash  limit key -> how many tasks hold a permit
-- KEY permit_holders  hash  id -> limit keys that it holds permits of
-- KEY refills         zset  limit key, or a limit after a tab -> when it has room
-- KEY bell            list  wake-ups for idle workers
-- KEY uniques         hash  unique key -> id
-- KEY unique_of       hash  id -> how long it is unique, its priority, since when, its key
-- KEY paused          hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY paused_tasks    hash  id -> its place among those put aside by a pause
-- KEY ticks           zset  schedule -> its next tick
-- KEY aside           zset  task name, sequence, id of all that were put aside by a pause
-- KEY followers       hash  id -> what waits for its end, or needs its outcome
-- KEY steps           hash  id of a step that waits -> how it is put into the queue
-- KEY groups          hash  group -> members left, all, failed, ms it is remembered, calls
-- KEY group_times     zset  group -> when it is forgotten, or given up if it is not all there
-- KEY thefts          stream  victim, thief, tasks; the last 200 thefts
-- KEY too_long        hash  id -> when a spare moment was too short for it
-- ARG worker         str   a name that no other process has
-- ARG lease_ms       int
-- ARG want           int   1, or 0 to report only
-- ARG victim         str   a worker that has tasks in its deque, or empty
-- ARG overran        str   id of a task that did not end in time and goes back, or empty
-- ARG renews         flag  that outcomes are expired each time, and not now and then
-- ARG retention_ms   int   that an outcome is kept; 0: not at all
-- ARG most_outcomes  int   that are kept
-- ARG unknown        str   outcome of a task that must not be run twice
-- ARG fitting        int   number of abilities that follow
-- ARGS abilities     str   name@version of what it may run; then reports: id, token, verdict,
--                          outcome, ms
--
-- Reply: the task as id, token, attempt, envelope, or nothing; what ability it takes; refused;
-- loads as worker, length, … if it was given nothing.

local refused, reports_at = {}, abilities_at + fitting
if #ARGV >= reports_at then settle(reports_at, #ARGV, refused) end
-- What it was given and never heard of.
local returned = return_running(math.huge, unknown)
for i = reports_at, #ARGV, 5 do
  if ARGV[i + 2] == 'back' then returned = returned + 1 end
end
if returned > 0 then wake_workers(returned) end
if overran ~= '' then
  local kept_ms = 24 * 3600 * 1000
  redis.call('HSET', too_long, overran, now)
  redis.call('PEXPIRE', too_long, kept_ms)
end

local is_fitting = {}
for i = abilities_at, abilities_at + fitting - 1 do is_fitting[ARGV[i]] = true end
local is_any_too_long = redis.call('EXISTS', too_long) == 1

-- How far it looks for a task that fits, in ids and in bytes of their envelopes.
local most_ids, may_read, ability = 20, 256 * 1024, ''
local function fits(id)
  if may_read <= 0 then return false end
  local envelope = redis.call('HGET', task, id)
  if not envelope then return false end
  may_read = may_read - #envelope
  local name, version = envelope_name(envelope)
  ability = name and name .. '@' .. version
  return is_fitting[ability or ''] and not suspect_among({id})
    and not (is_any_too_long and redis.call('HEXISTS', too_long, id) == 1)
end

local function take_from_front(inbox)
  for n, id in ipairs(redis.call('LRANGE', inbox, 0, most_ids - 1)) do
    if fits(id) then
      local before = redis.call('LPOP', inbox, n)
      for i = n - 1, 1, -1 do redis.call('LPUSH', inbox, before[i]) end
      accept({id}, false, inbox)
      return
    end
  end
end

local function take_from_back()
  local ids = redis.call('LRANGE', victim_deque, -most_ids, -1)
  for n = #ids, 1, -1 do
    local id, holder = ids[n], redis.call('HGET', lock, ids[n])
    if holder and string.sub(holder, 1, #victim + 1) == victim .. '#' and fits(id) then
      local behind = redis.call('RPOP', victim_deque, #ids - n + 1)
      for i = #behind - 1, 1, -1 do redis.call('RPUSH', victim_deque, behind[i]) end
      redis.call('HDEL', lock, id)
      local attempts, deaths, steals, failures = read_history(redis.call('HGET', history, id))
      redis.call('HSET', history, id, write_history(attempts, deaths, steals + 1, failures))
      becomes_odd()
      redis.call('HINCRBY', stats, 'stolen', 1)
      redis.call('XADD', thefts, 'MAXLEN', 200, '*', 'victim', victim, 'thief', worker, 'tasks', 1)
      record_load(victim, redis.call('LLEN', victim_deque))
      accept({id}, false)
      return
    end
  end
end

if want > 0 and next(is_fitting) and not is_queue_paused() then
  local most_promoted = 100
  if is_odd and promote(now, most_promoted) > 0 then becomes_odd() end
  for _, inbox in ipairs(inboxes) do
    if room > 0 then take_from_front(inbox) end
  end
  if room > 0 and victim ~= '' then take_from_back() end
end
if #tasks > 0 then
  first_write('ZADD', workers, now + lease_ms, worker)
  redis.call('HINCRBY', stats, 'brief', 1)
  return {tasks, ability, refused, {}}
end
redis.call('ZREM', workers, worker)
return {tasks, '', refused, redis.call('ZRANDMEMBER', loads, 3, 'WITHSCORES')}
