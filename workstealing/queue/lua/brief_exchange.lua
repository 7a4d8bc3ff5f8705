--- needs: unusual, caller, settle, take, envelope_name, first_write, wake_workers
--- needs rarely: orphans, suspects, paused, history, obstacles, take_turns, permits, promote, load
-- The exchange of a process that runs short tasks in a spare moment: deliver its reports, and
-- take a few tasks that fit. They come from the front of an inbox, from the line whose turn it
-- is, or one from the back of the deque of a worker that has many. The process is known by its
-- lease alone: it is no member, has no deque, and gets no share of the inboxes. If it dies,
-- upkeep treats it as a dead worker.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY done            hash  id -> outcome
-- KEY outcome_times   list  id and when its outcome expires, in the order of their ends
-- KEY purged          hash  id -> how often outcome_times names it that was forgotten
-- KEY later           zset  id -> when it is due
-- KEY dead            zset  id -> when it was given up
-- KEY workers         zset  worker -> end of its lease
-- KEY members         hash  worker -> incarnation|description
-- KEY loads           zset  worker -> length of its deque
-- KEY victim_deque    list  of the worker that it may steal from
-- KEY running         hash  id -> begun at; of this worker
-- KEY control         hash  token
-- KEY stats           hash  counts
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY cancelling      set      ids whose workers are asked to stop
-- KEY cancelled       hash  id -> how often an inbox names it that was cancelled
-- KEY parked          hash  id -> ability that it waits for
-- KEY parked_abilities  set  abilities that something is parked for
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
-- KEY limits          hash  limit -> its numbers; then those of the code, if others
-- KEY rates           zset  limit key -> when its bucket is full
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
-- KEY thefts          stream  the last 200 thefts: victim, thief, tasks moved
-- KEY too_long        hash  id -> when a spare moment was too short for it
-- KEY biographies     hash  id -> events of a task that has ended, as in history
-- ARG worker         str   a name that no other process has
-- ARG lease_ms       int
-- ARG want           int   tasks to take at most; 0: report only
-- ARG victim         str   a worker that has tasks in its deque, or empty
-- ARG overran        str   id of a task that did not end in time, or empty
-- ARG runs_on        flag  that task runs on, and is kept until the lease ends; others go back
-- ARG renews         flag  that outcomes are expired each time, and not now and then
-- ARG retention_ms   int   that an outcome is kept; 0: not at all
-- ARG most_outcomes  int   that are kept
-- ARG unknown        str   outcome of a task that must not be run twice
-- ARG fitting        int   number of abilities that follow
-- ARGS abilities_and_reports  str  name@version of what it may run; then reports: id, token,
--                                  verdict, outcome, ms
--
-- Reply: tasks as id, token, attempt, envelope, …; what ability each takes; refused; loads as
-- worker, length, … if it was given nothing; the time; which of the tasks somebody asked to cancel;
-- of what fits, what some are parked for, if it was given nothing; id, first line of its history,
-- … of tasks that have one.

-- First, its reports: tasks that it had have ended, or go back.

local refused, reports_at = {}, abilities_and_reports_at + fitting
if #ARGV >= reports_at then settle(reports_at, #ARGV, refused) end
local returned = 0
-- Tasks that are still in `running` were given to it in a reply that got lost: they go back, too. A
-- task that runs on does not, so it is removed while all others in `running` are returned.
local kept_since = runs_on and redis.call('HGET', running, overran)
if kept_since then redis.call('HDEL', running, overran) end
if redis.call('EXISTS', running) == 1 then returned = return_running(math.huge, unknown) end
if kept_since then redis.call('HSET', running, overran, kept_since) end
if returned > 0 then becomes_odd() end
local is_refused = {}
for _, id in ipairs(refused) do is_refused[id] = true end
for i = reports_at, #ARGV, 5 do
  if ARGV[i + 2] == 'back' and not is_refused[ARGV[i]] then returned = returned + 1 end
end
if returned > 0 then wake_workers(returned) end
if overran ~= '' then
  local kept_ms, most_kept = 24 * 3600 * 1000, 1000
  -- Most of so many ended long ago. The others are tried once more.
  if redis.call('HLEN', too_long) >= most_kept then redis.call('DEL', too_long) end
  first_write('HSET', too_long, overran, now)
  redis.call('PEXPIRE', too_long, kept_ms)
end

-- Which tasks fit: those that Python says are brief and may run here, unless they are for workers.

local is_fitting = {}
for i = abilities_and_reports_at, reports_at - 1 do is_fitting[ARGV[i]] = true end
local is_any_too_long = redis.call('EXISTS', too_long) == 1

-- A task that a worker died with may end this process, too. Workers can be replaced.
local function is_for_workers(id)
  if is_any_too_long and redis.call('HEXISTS', too_long, id) == 1 then return true end
  return is_odd and suspect_among({id}) and redis.call('EXISTS', members) == 1
end

-- How far it looks for tasks that fit: past so many ids that do not, and into so many bytes of
-- envelopes, and one larger envelope. Other large tasks do not fit, and hide none behind them.
local most_others, may_read, may_read_more = 20, 256 * 1024, true
local function ability_in(envelope)
  local name, version = envelope_name(envelope)
  return name and name .. '@' .. version or ''
end

local function fits(id)
  local size = redis.call('HSTRLEN', task, id)
  if size > may_read and not may_read_more then return false end
  if size > may_read then may_read_more = false else may_read = may_read - size end
  local envelope = redis.call('HGET', task, id)
  if not envelope then return false end
  return is_fitting[ability_in(envelope)] and not is_for_workers(id)
end

local function begins_with_fitting(line)
  local first = first_of(lines, line, 1)[1]
  return not first or fits(string.sub(first, #line + 19))
end

-- Where it takes tasks from: lines, the front of inboxes, the back of a deque.

-- Let lines have their turns, for one task, since only the first task of a line was looked at. It
-- is taken before all others, so that it is run: room of a rate, once used, does not come back.
local function take_from_lines(priority)
  if room == 0 or #tasks > 0 then return end
  local others = room - 1
  room = 1
  take_turns(priority, begins_with_fitting)
  room = room + others
end

-- Choose tasks at the front of an inbox that fit, and return them, those before or between
-- them, and how many both are. A suspect is chosen alone, and one that is unique until it is
-- begun as the first, for it stays begun if there is no time for it.
local function choose_first(inbox)
  local chosen, others, number = {}, {}, 0
  for n, id in ipairs(redis.call('LRANGE', inbox, 0, room + most_others - 1)) do
    if #chosen == room or #others == most_others then break end
    if not fits(id) then
      others[#others + 1] = id
    elseif is_odd and suspect_among({id}) then
      is_alone = true
      if #chosen == 0 and #tasks == 0 then chosen[1], number = id, n end
      break
    elseif #chosen + #tasks > 0 and is_there(unique_of)
        and redis.call('HEXISTS', unique_of, id) == 1 then
      break
    else
      chosen[#chosen + 1], number = id, n
    end
  end
  return chosen, others, number
end

-- Take tasks at the front of an inbox that fit; tell whether there were any, even if put aside.
local function take_first(inbox)
  local chosen, others, number = choose_first(inbox)
  if #chosen == 0 then return false end
  redis.call('LPOP', inbox, number)
  for i = number - #chosen, 1, -1 do redis.call('LPUSH', inbox, others[i]) end
  accept(chosen, false, inbox)
  if is_alone then is_alone = #tasks > 0 end
  return true
end

local function take_from_front(inbox)
  if is_odd then drop_cancelled(inbox) end
  if is_odd and is_any_name_paused() then set_paused_aside(inbox, false) end
  for _ = 1, most_others do
    if room == 0 or is_alone or not take_first(inbox) then return end
  end
end

local function take_from_back()
  local ids = redis.call('LRANGE', victim_deque, -most_others, -1)
  for n = #ids, 1, -1 do
    local id, holder = ids[n], redis.call('HGET', lock, ids[n])
    if holder and string.sub(holder, 1, #victim + 1) == victim .. '#' and fits(id) then
      local behind = redis.call('RPOP', victim_deque, #ids - n + 1)
      for i = #behind - 1, 1, -1 do redis.call('RPUSH', victim_deque, behind[i]) end
      redis.call('HDEL', lock, id)
      local attempts, deaths, steals, failures, events =
        read_history(redis.call('HGET', history, id))
      events = add_events(events, {event('s', now, worker, victim)})
      redis.call('HSET', history, id,
        write_history(attempts, deaths, steals + 1, failures, events))
      becomes_odd()
      redis.call('HINCRBY', stats, 'stolen', 1)
      redis.call('XADD', thefts, 'MAXLEN', 200, '*', 'victim', victim, 'thief', worker, 'tasks', 1)
      record_load(victim, redis.call('LLEN', victim_deque))
      accept({id}, false)
      return
    end
  end
end

-- Take tasks: in which order it looks for them.

if want > 0 and next(is_fitting) and not (is_odd and is_queue_paused()) then
  local most_promoted = 100
  if is_odd and promote(now, most_promoted) > 0 then becomes_odd() end
  local has_lines = is_there(placed)
  if has_lines then renew_rates(now, most_promoted) end
  -- As with workers, one in sixteen begins with low tasks, and one with normal ones; lines and
  -- inboxes take turns. The millisecond is as good as a draw.
  local lines_come_first = has_lines and math.floor(now / 16) % 2 == 0
  for _, n in ipairs(({{3, 1, 2}, {2, 1, 3}})[now % 16 + 1] or {1, 2, 3}) do
    if lines_come_first then take_from_lines(n - 1) end
    if room > 0 and not is_alone then take_from_front(inboxes[n]) end
    if has_lines then take_from_lines(n - 1) end
  end
  if #tasks == 0 and victim ~= '' then take_from_back() end
end
-- Lines whose limit has room again may be for workers.
local unblocked = is_odd and number_unblocked() or 0
if unblocked > 0 then wake_workers(unblocked) end

-- Its lease, which is all that the queue knows of it, and the reply.

if kept_since or #tasks > 0 then
  first_write('ZADD', workers, now + lease_ms, worker)
else
  redis.call('ZREM', workers, worker)
end
-- Paused tasks may stand before others, further than this call may read.
if bytes_left <= 0 then wake_workers(1) end
if #tasks == 0 then
  local wanted, most_wanted = {}, 10
  if want > 0 and redis.call('EXISTS', parked_abilities) == 1 then
    for _, ability in ipairs(redis.call('SRANDMEMBER', parked_abilities, most_wanted)) do
      if is_fitting[ability] then wanted[#wanted + 1] = ability end
    end
  end
  return {tasks, {}, refused, redis.call('ZRANDMEMBER', loads, 3, 'WITHSCORES'), now, {}, wanted, {}}
end
redis.call('HINCRBY', stats, 'brief', #tasks / 4)
local is_any_cancelled, abilities, to_cancel = is_there(cancelling), {}, {}
for i = 1, #tasks, 4 do
  abilities[#abilities + 1] = ability_in(tasks[i + 3])
  if is_any_cancelled and redis.call('SISMEMBER', cancelling, tasks[i]) == 1 then
    to_cancel[#to_cancel + 1] = tasks[i]
  end
end
return {tasks, abilities, refused, {}, now, to_cancel, {}, befell}
