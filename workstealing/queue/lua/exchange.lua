--- needs: caller, unusual, membership, settle, resynchronize, promote, suspects, take
--- needs: paused, refill, load, first_write
-- The hot path of a worker, one round trip per batch: deliver reports, renew the
-- lease, take the next tasks, and learn what else there is to do.
--
-- It relies on these rules, as does every script that writes the same keys:
-- * An id is in exactly one place: an inbox, a deque, running, later, parked, lines or dead.
--   The lock says whose it is while it is in a deque or running, and nothing otherwise.
-- * Reports are settled before membership is looked at: a late report of a worker that
--   was struck off still counts, if its token does.
-- * Code that writes a key of lib/unusual calls becomes_odd, or else the rest of the script
--   ignores that key.
-- * Three victims are named, because one of them may be the thief itself.
--
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY task        hash  id -> envelope
-- KEY lock        hash  id -> worker#token
-- KEY done        hash  id -> outcome
-- KEY outbox      zset  id -> when its outcome expires
-- KEY later       zset  id -> when it is due
-- KEY dead        zset  id -> when it was given up
-- KEY workers     zset  worker -> end of its lease
-- KEY members     hash  worker -> incarnation|description
-- KEY loads       zset  worker -> length of its deque
-- KEY deque       list  of this worker
-- KEY running     hash  id -> begun at; of this worker
-- KEY control     hash  token
-- KEY stats       hash  counts
-- KEY history     hash  id -> attempts:deaths:steals
-- KEY cancelling  set   ids whose workers are asked to stop
-- KEY cancelled   hash  id -> how often an inbox names it that was cancelled
-- KEY upkeep      hash  duty -> last done at
-- KEY parked      hash  id -> ability that it waits for
-- KEY awaited     hash  id -> channels to publish its outcome on
-- KEY priorities  hash  id -> 0 urgent or 2 low; of tasks that left such an inbox
-- KEY uniques     hash  unique key -> id
-- KEY unique_of   hash  id -> how long it is unique, its priority, since when, its key
-- KEY paused        hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY paused_tasks  hash  id -> its place in lines, if it waits there because of a pause
-- KEY lines         zset  line, sequence, id with \0 between them; all scores are 0
-- KEY ticks       zset  schedule -> its next tick
-- ARG worker         str
-- ARG incarnation    str
-- ARG lease_ms       int
-- ARG renews         flag  the lease, and looks whether upkeep is overdue
-- ARG want           int  tasks to take at most
-- ARG keep           int  tasks to hold in the deque at most
-- ARG retention_ms   int  that an outcome is kept; 0: not at all
-- ARG most_outcomes  int  that are kept
-- ARG upkeep_ms      int  after which upkeep is overdue
-- ARG held           int  number of ids that follow; -1: the worker is sure of what it holds
-- ARGS held_ids      str  tasks of the worker; then reports: id, token, verdict, outcome,
--                         ms; verdict is one of done, cancelled, expired, failed, dead,
--                         forged, retry, back; failed and forged are dead, and counted apart too
--
-- Reply: 'lost', or 'ok', tasks, refused, cancelled, victims, unfinished, upkeep overdue,
-- not due yet, waiting because of a pause, schedules that are due (looked at when the lease is
-- renewed, or nothing is taken), pauses. Tasks is id, token, attempt, envelope, …; victims is
-- worker, load, …; pauses is name, since when, …

local reports_at, slice, refused = held_ids_at + math.max(0, held), 5 * 1000, {}
for first = reports_at, #ARGV, slice do
  settle(first, math.min(first + slice - 1, #ARGV), refused)
end
if not is_member() then return {'lost'} end
if renews then first_write('ZADD', workers, now + lease_ms, worker) end
if held >= 0 then resynchronize(held) end

local may_take = want > 0 and not is_queue_paused()
if may_take then
  local most_promoted = 100
  if is_odd then promote(now, most_promoted) end
  local lists = redis.call('EXISTS', inboxes[1], inboxes[2], inboxes[3], deque)
  if lists > 0 and not holds_suspect() then
    take_from(inboxes[1], false)
    if lists_met < lists then take_from(deque, true) end
    if lists_met < lists then take_from(inboxes[2], false) end
    if lists_met < lists then take_from(inboxes[3], false) end
    -- With room left, the inboxes are empty, or another look finds what they have.
    if room == 0 and not is_alone then refill() end
  end
end
if has_deque_changed then record_load(worker, redis.call('LLEN', deque)) end

local victims = {}
if may_take and #tasks == 0 then
  victims = redis.call('ZRANDMEMBER', loads, 3, 'WITHSCORES')
end
local to_stop = {}
if is_there(cancelling) then
  for _, id in ipairs(redis.call('HKEYS', running)) do
    if redis.call('SISMEMBER', cancelling, id) == 1 then to_stop[#to_stop + 1] = id end
  end
end
local is_overdue = 0
if renews and now - tonumber(redis.call('HGET', upkeep, 'claimed') or 0) > upkeep_ms then
  redis.call('HSET', upkeep, 'claimed', now)
  is_overdue = 1
end
local unfinished, delayed, held_back, pauses = redis.call('HLEN', task), 0, 0, {}
if is_odd then
  unfinished = unfinished - redis.call('ZCARD', dead) - redis.call('HLEN', parked)
  delayed = redis.call('ZCARD', later)
  if is_there(paused) then
    held_back, pauses = redis.call('HLEN', paused_tasks), redis.call('HGETALL', paused)
  end
end
local due = 0
if has_ticks and (renews or #tasks == 0) then due = redis.call('ZCOUNT', ticks, '-inf', now) end
return {'ok', tasks, refused, to_stop, victims, unfinished, is_overdue, delayed, held_back, due,
  pauses}
