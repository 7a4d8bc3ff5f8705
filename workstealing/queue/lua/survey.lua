--- needs: clock, wake_workers, first_write, outcome_times
-- Find work for upkeep: dead workers, rich workers, abilities that parked tasks wait for.
--
-- KEY workers           zset  worker -> end of its lease
-- KEY loads             zset  worker -> length of its deque
-- KEY parked_abilities  set      abilities that something is parked for
-- KEY abilities         hash  name@version -> workers that can run it
-- KEY upkeep            hash  duty -> last done at
-- KEY later             zset  id -> when it is due
-- KEY ticks             zset  schedule -> its next tick
-- KEY inboxes[3]        list  urgent, normal, low
-- KEY bell              list  wake-ups for idle workers
-- KEY paused            hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY turns[3]          zset  line -> its turn; urgent, normal, low
-- KEY refills           zset  limit key, or a limit after a tab -> when it has room
-- KEY outcome_times     list  id and when its outcome expires, in the order of their ends
-- KEY dead              zset  id -> when it was given up
-- KEY unique_windows    zset  unique key -> when its window ends
-- KEY rates             zset  limit key -> when its bucket is full
-- KEY group_times       zset  group -> when it is forgotten, or given up if it is not all there
-- KEY lock              hash  id -> worker#token
-- KEY permit_holders    hash  id -> limit keys that it holds permits of
-- ARG most      int  names of each kind
-- ARG lease_ms  int
-- ARG grace_ms  int  in which a living worker renews its lease
-- ARG gap_ms    int  between two looks at most, unless nobody looked
--
-- A clock that jumps ahead ends all leases at once. It cannot be told from a time in which
-- nobody looked, so after both the living have the grace to renew their leases, and those at
-- rest are woken for that. Where looks are always far apart, a worker is dead if the look
-- before found that its lease had ended.
--
-- Reply: now, the dead, the rich, some of the living, abilities to unpark, upkeep as
-- duty, time, …; ms until the next delayed task is due or a rate has room again, -1 if nothing
-- waits for its time; names that are being resumed; how many schedules are due; 1 if anything
-- may have to be forgotten, 1 if locks are to be compared.

local now, waiting = now_ms(), 0
local duties, before = redis.call('HGETALL', upkeep), {}
for n = 1, #duties, 2 do before[duties[n]] = tonumber(duties[n + 1]) end
local looked, doubted = before.looked or now, before.doubted or 0
local since_doubt, ended_by = now - doubted, now
if now - looked > math.max(gap_ms, lease_ms / 2) then
  ended_by = since_doubt >= grace_ms and doubted or 0
  doubted = now
  wake_workers(math.huge)
elseif since_doubt >= 0 and since_doubt < math.min(grace_ms, lease_ms) then
  ended_by = 0
end
local dead_workers = redis.call('ZRANGE', workers, '-inf', ended_by, 'BYSCORE', 'LIMIT', 0, most)
first_write('HSET', upkeep, 'claimed', now, 'looked', now, 'doubted', doubted, 'surveyed', now)
duties[#duties + 1] = 'claimed'
duties[#duties + 1] = now
local _, oldest = read_outcome_time(redis.call('LINDEX', outcome_times, 0))
local has_old = (oldest or math.huge) <= now and 1 or 0
-- One look at all keys that a queue at rest does not have.
if redis.call('EXISTS', loads, parked_abilities, later, ticks, inboxes[1], inboxes[2], inboxes[3],
    paused, turns[1], turns[2], turns[3], refills, dead, unique_windows, rates, group_times,
    lock, permit_holders) == 0 then
  return {now, dead_workers, {}, {}, {}, duties, -1, {}, 0, has_old, 0}
end
local rich = redis.call('ZRANGE', loads, '+inf', 2, 'BYSCORE', 'REV', 'LIMIT', 0, most)
local living = {}
if #rich > 0 then living = redis.call('ZRANDMEMBER', workers, most) end
local wanted = {}
for _, ability in ipairs(redis.call('SRANDMEMBER', parked_abilities, most)) do
  if redis.call('HEXISTS', abilities, ability) == 1 then wanted[#wanted + 1] = ability end
end
local resuming, pauses = {}, redis.call('HGETALL', paused)
local is_queue_paused = false
for n = 1, #pauses, 2 do
  if pauses[n] == '*' then is_queue_paused = true end
  if pauses[n + 1] == '0' then resuming[#resuming + 1] = pauses[n] end
end
local due_at
for _, key in ipairs({later, refills}) do
  local first = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
  if first and (not due_at or first < due_at) then due_at = first end
end
-- A wake-up may have been lost; another one does no harm.
for _, inbox in ipairs(inboxes) do waiting = waiting + redis.call('LLEN', inbox) end
for _, key in ipairs(turns) do waiting = waiting + redis.call('ZCARD', key) end
if not is_queue_paused then wake_workers(waiting) end
if redis.call('EXISTS', dead, unique_windows, rates, group_times) > 0 then has_old = 1 end
return {now, dead_workers, rich, living, wanted, duties,
  due_at and math.max(0, due_at - now) or -1, resuming,
  redis.call('ZCOUNT', ticks, '-inf', now), has_old, redis.call('EXISTS', lock, permit_holders)}
