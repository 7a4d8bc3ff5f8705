--- needs: caller, unusual, membership, settle, take_order, refill, load, first_write
--- needs: wake_workers, quiet_upkeep
--- needs rarely: resynchronize, promote, suspects, paused, take_turns, permits, count_blocked
-- The hot path of a worker, one round trip per batch: deliver reports, renew the
-- lease, take the next tasks, and learn what else there is to do.
--
-- It relies on these rules, as does every script that writes the same keys:
-- * An id is in exactly one place: an inbox, a line, a deque, running, later, parked, aside,
--   steps or dead. The lock says whose it is while it is in a deque or running, and nothing otherwise.
-- * A task that was taken from a line holds permits as long as it is locked, and no longer.
-- * Reports are settled before membership is looked at: a late report of a worker that
--   was struck off still counts, if its token does.
-- * Code that writes a key of lib/unusual calls becomes_odd, or else the rest of the script
--   ignores that key.
-- * Three victims are named, because one of them may be the thief itself.
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
-- KEY deque           list  of this worker
-- KEY running         hash  id -> begun at; of this worker
-- KEY control         hash  token
-- KEY stats           hash  counts
-- KEY history         hash  id -> attempts:deaths:steals:events, then failures
-- KEY cancelling      set      ids whose workers are asked to stop
-- KEY cancelled       hash  id -> how often an inbox names it that was cancelled
-- KEY upkeep          hash  duty -> last done at
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
-- KEY biographies     hash  id -> events of a task that has ended, as in history
-- ARG worker         str
-- ARG incarnation    str
-- ARG lease_ms       int
-- ARG renews         flag  the lease, and looks whether upkeep is overdue
-- ARG want           int  tasks to take at most
-- ARG keep           int  tasks to hold in the deque at most
-- ARG retention_ms   int  that an outcome is kept; 0: not at all
-- ARG most_outcomes  int  that are kept
-- ARG upkeep_ms      int  after which upkeep is overdue
-- ARG held           int  number of strings before reports; -1: the worker is sure of what it holds
-- ARGS held_and_reports  str  the outcome of a task that was begun and is not held, and tasks of
--                             the worker; then reports: id, token, verdict, outcome, ms; verdict
--                             is one of done, cancelled, expired, failed, dead, forged, retry,
--                             back; failed and forged are dead, and counted apart too
--
-- Reply: 'lost', or the time, tasks, refused, cancelled, victims, unfinished (-1: not counted this
-- time), upkeep overdue, not due yet, waiting because of a pause, schedules that are due
-- (looked at when the lease is renewed, or fewer tasks are taken than wanted), ms until the next
-- schedule is due, or task or rate if any are wanted (-1: none, or as many were taken), pauses,
-- held back by limits (of a few lines at most), what befell the tasks before, tasks that were
-- given up. Tasks is id, token, attempt, envelope, …; victims is worker, load, …; pauses is name,
-- since when, …; what befell them is id, first line of its history, …; given up is id, name,
-- outcome, … All behind upkeep overdue is left out where there is nothing of it.

local reports_at, slice, refused = held_and_reports_at + math.max(0, held), 5 * 1000, {}
for first = reports_at, #ARGV, slice do
  settle(first, math.min(first + slice - 1, #ARGV), refused)
end
-- An exchange that neither renews nor takes tasks leaves a lost lease to a later one to notice.
if (renews or held >= 0) and not is_member() then return {'lost'} end
if renews then first_write('ZADD', workers, now + lease_ms, worker) end
local lost = held >= 0 and resynchronize(held) or nil

local may_take, has_lines, promoted = want > 0 and not (is_odd and is_queue_paused()), false, 0
if may_take then
  local most_promoted = 100
  if is_odd then promoted = promote(now, most_promoted) end
  if promoted > 0 then becomes_odd() end
  has_lines = is_there(placed)
  if has_lines then renew_rates(now, most_promoted) end
  local has_any = has_lists(has_lines)
  if has_any and not renews and held < 0 and not is_member() then return {'lost'} end
  if has_any and not (is_odd and holds_suspect()) then
    for _, priority in ipairs(order_of_priorities(has_lines)) do
      take_priority(priority, has_lines)
    end
    -- With room left, the inboxes are empty, or another look finds what they have.
    if room == 0 and keep > 0 and not is_alone then refill() end
  end
end
if has_deque_changed then record_load(worker, redis.call('LLEN', deque)) end
-- Lines that have room again, or that this worker has not served, are for others.
local unblocked = is_odd and number_unblocked() or 0
if (unblocked > 0 or has_lines and room > 0 and not is_alone)
    and redis.call('EXISTS', turns[1], turns[2], turns[3]) > 0 then
  wake_workers(math.max(1, unblocked))
end

-- Tasks that were too large to read at once must not wait until those that were read have run.
if bytes_left <= 0 then wake_workers(1) end

-- Many tasks that came due together are for all resting workers: only this one knew when.
if promoted > #tasks / 4 then wake_workers(promoted - #tasks / 4) end

local victims = {}
if may_take and #tasks == 0 then
  if has_loads then victims = redis.call('ZRANDMEMBER', loads, 3, 'WITHSCORES') end
  -- A wake-up that is left over would only wake it again: all workers look before they rest.
  if has_bell and lists == 0 and not has_lines and not has_loads then
    redis.call('DEL', bell)
  end
end
local to_stop = {}
if is_there(cancelling) then
  for _, id in ipairs(redis.call('HKEYS', running)) do
    if redis.call('SISMEMBER', cancelling, id) == 1 then to_stop[#to_stop + 1] = id end
  end
end
local is_quiet = may_take and lists == 0 and not has_lines and not is_odd and not has_ticks
local is_overdue = renews and claim_upkeep(is_quiet and #victims == 0) and 1 or 0
-- A worker that was given tasks is told the counts only when it renews its lease.
local is_told = renews or #tasks == 0 or is_odd
local unfinished = not is_told and -1 or has_tasks and redis.call('HLEN', task) or 0
local delayed, held_back, pauses = 0, 0, {}
local limited, most_lines = 0, 10
if is_odd then
  unfinished = unfinished - redis.call('ZCARD', dead) - redis.call('HLEN', parked)
  -- Steps wait for other tasks, which are counted themselves.
  if is_there(steps) then unfinished = unfinished - redis.call('HLEN', steps) end
  delayed = redis.call('ZCARD', later)
  if is_there(paused) then
    held_back, pauses = redis.call('HLEN', paused_tasks), redis.call('HGETALL', paused)
  end
  if is_there(placed) then limited = count_blocked(now, most_lines) end
end
-- Delayed tasks and rates are for workers that take tasks, and these may all be at rest.
if is_odd and renews and want == 0 and not is_queue_paused()
    and redis.call('ZCOUNT', later, '-inf', now) + redis.call('ZCOUNT', refills, '-inf', now) > 0 then
  wake_workers(1)
end
-- Its slots that stay free are to begin what comes due at that moment.
local has_free, due, next_in = #tasks == 0 or #tasks / 4 < want, 0, -1
if has_ticks and (renews or has_free) then due = redis.call('ZCOUNT', ticks, '-inf', now) end
if has_free and (is_odd and may_take or has_ticks) then
  -- A task that was due already and was left may have to stay: that is no reason to hurry.
  local after_now = '(' .. string.format('%d', now)
  for _, key in ipairs(is_odd and may_take and {later, refills, ticks} or {ticks}) do
    local first = tonumber(redis.call('ZRANGE', key, after_now, '+inf', 'BYSCORE',
      'LIMIT', 0, 1, 'WITHSCORES')[2])
    if first and (next_in < 0 or first - now < next_in) then
      next_in = math.ceil(first - now)
    end
  end
end
-- Writing a reply takes time, too, so values that are mostly empty are left out.
if not is_odd and due == 0 and next_in < 0 then
  return {now, tasks, refused, to_stop, victims, unfinished, is_overdue}
end
return {now, tasks, refused, to_stop, victims, unfinished, is_overdue, delayed, held_back, due,
  next_in, pauses, limited, befell, lost}
