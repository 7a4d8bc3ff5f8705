--- needs: clock, history, token, load, wake_workers, envelope_name
-- Move half of a victim's deque, from its back, to a worker that has nothing. Tasks that
-- the thief cannot run stay.
--
-- KEY victim_deque  list
-- KEY thief_deque   list
-- KEY lock     hash  id -> worker#token
-- KEY loads    zset  worker -> length of its deque
-- KEY members  hash  worker -> incarnation|description
-- KEY control  hash  token
-- KEY stats    hash  counts
-- KEY history  hash  id -> attempts:deaths:steals:events, then failures
-- KEY bell     list  wake-ups for idle workers
-- KEY task     hash  id -> envelope
-- KEY paused   hash  task name, or * for all -> since when; 0: it is being resumed
-- KEY thefts   stream  the last 200 thefts: victim, thief, tasks moved
-- ARG victim  str   name
-- ARG thief   str   name
-- ARG most    int   tasks moved at most
-- ARG wake    flag  the thief does not know of it, so wake a worker
--
-- Reply: number of tasks moved.

local length = redis.call('LLEN', victim_deque)
if length == 0 then redis.call('ZREM', loads, victim) end
-- A thief that has something is no thief; so the same call twice moves nothing twice.
if length == 0 or redis.call('LLEN', thief_deque) > 0 then return 0 end
local member = redis.call('HGET', members, thief)
if not member or redis.call('HEXISTS', paused, '*') == 1 then return 0 end

-- Only where old and new workers run side by side is each task looked at: what a thief
-- cannot run would at once be routed back, and stolen again, as long as it is idle.
local function abilities_of(text)
  return text and string.match(text, '"abilities": (%[.-%])')
end
local abilities, is_capable = abilities_of(member), nil
if abilities and abilities ~= abilities_of(redis.call('HGET', members, victim)) then
  is_capable = {}
  for _, ability in ipairs(cjson.decode(string.match(member, '|(.*)$')).abilities) do
    is_capable[ability] = true
  end
end
-- What would take too long to look at stays, too.
local may_read = 4 * 1024 * 1024
local function is_fit(id)
  if not is_capable then return true end
  if may_read <= 0 then return false end
  local envelope = redis.call('HGET', task, id)
  if not envelope then return true end
  may_read = may_read - #envelope
  local name, version = envelope_name(envelope)
  -- A task that nobody can read, any worker can put aside.
  return not name or is_capable[name .. '@' .. version]
end

local stolen = {event('s', now_ms(), thief, victim)}
local taken = redis.call('RPOP', victim_deque, math.min(math.ceil(length / 2), most))
local holders = redis.call('HMGET', lock, unpack(taken))
local histories = redis.call('HMGET', history, unpack(taken))
local moved, left = {}, length - #taken
local locks, noted = {}, {}
for n = #taken, 1, -1 do
  local id, holder = taken[n], holders[n]
  if holder and string.sub(holder, 1, #victim + 1) == victim .. '#' then
    if is_fit(id) then
      local attempts, deaths, steals, failures, events = read_history(histories[n])
      events = add_events(events, stolen)
      moved[#moved + 1] = id
      noted[#noted + 1] = id
      noted[#noted + 1] = write_history(attempts, deaths, steals + 1, failures, events)
      locks[#locks + 1] = id
      locks[#locks + 1] = thief .. '#' .. new_token()
    else
      left = redis.call('RPUSH', victim_deque, id)
    end
  end
end
record_load(victim, left)
if #moved > 0 then
  redis.call('HSET', history, unpack(noted))
  redis.call('HSET', lock, unpack(locks))
  redis.call('RPUSH', thief_deque, unpack(moved))
  redis.call('ZADD', loads, #moved, thief)
  redis.call('HINCRBY', stats, 'stolen', #moved)
  redis.call('HINCRBY', stats, 'stolen:' .. thief, #moved)
  redis.call('XADD', thefts, 'MAXLEN', 200, '*', 'victim', victim, 'thief', thief, 'tasks', #moved)
  if wake then wake_workers(1) end
end
return #moved
