--- needs: clock, history, inboxes, promote, expire, tell, utf8
-- The hot path of a worker, one round trip per batch: report what is finished, renew the
-- lease, take the next tasks, and learn what else is worth doing.
--
-- A report counts only if the task is still locked to this worker by the token that it
-- names. Reporting again what was accepted changes nothing.
--
-- KEYS[1]   inbox0   list   urgent
-- KEYS[2]   inbox1   list   normal
-- KEYS[3]   inbox2   list   when there is nothing else
-- KEYS[4]   task     hash   id -> envelope
-- KEYS[5]   lock     hash   id -> worker#token
-- KEYS[6]   done     hash   id -> outcome
-- KEYS[7]   outbox   zset   id -> when its outcome expires
-- KEYS[8]   later    zset   id -> when it is due
-- KEYS[9]   dead     zset   id -> when it was given up
-- KEYS[10]  workers  zset   worker -> end of its lease
-- KEYS[11]  members  hash   worker -> incarnation|description
-- KEYS[12]  loads    zset   worker -> length of its deque
-- KEYS[13]  deque    list   of this worker
-- KEYS[14]  running  hash   id -> begun at; of this worker
-- KEYS[15]  control  hash   token, closed
-- KEYS[16]  stats    hash   counts
-- KEYS[17]  history  hash   id -> attempts:deaths:steals
-- KEYS[18]  cancels  set    ids whose workers are asked to stop
-- KEYS[19]  upkeep   hash   duty -> last done at
-- KEYS[20]  parked   hash   id -> what it needs
-- KEYS[21]  awaited  hash   id -> channels of those who wait for its outcome
-- KEYS[22]  graves   set    cancelled ids that an inbox still names
-- ARGV[1]   worker       str
-- ARGV[2]   incarnation  str
-- ARGV[3]   lease        int   ms
-- ARGV[4]   want         int   tasks to take at most
-- ARGV[5]   keep         int   tasks to hold in the deque at most
-- ARGV[6]   retention    int   ms that an outcome is kept; 0: not at all
-- ARGV[7]   kept         int   outcomes that are kept at most
-- ARGV[8]   upkeep       int   ms after which upkeep is overdue
-- ARGV[9]   known        int   ids the worker holds; -1: it is sure of what it holds
-- ARGV[…]   known ids, then reports: id, token, verdict, outcome, ms; verdict is one of
--           done, cancelled, failed, dead, forged, retry, back; failed and forged ones are
--           dead, and counted apart too
--
-- Reply: 'lost', or 'ok', tasks, refused, cancelled, victims, facts. Tasks is id, token,
-- attempt, envelope, …; victims is worker, load, …; facts is now, unfinished, closed,
-- upkeep overdue, not due yet.

local worker, incarnation = ARGV[1], ARGV[2]
local lease, want, keep = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local retention, kept = tonumber(ARGV[6]), tonumber(ARGV[7])
local inboxes = {KEYS[1], KEYS[2], KEYS[3]}
local now = now_ms()
local mine = worker .. '#'
-- Numbers are written out anew for each command that takes them; these serve many.
local now_text, expiry_text = string.format('%d', now), string.format('%d', now + retention)

-- These are there only if something out of the ordinary has happened: one look for all.
local is_odd = redis.call('EXISTS', KEYS[8], KEYS[9], KEYS[17], KEYS[18], KEYS[20], KEYS[22]) > 0
local function is_there(key) return is_odd and redis.call('EXISTS', key) == 1 end

local function settle(first, last, refused)
  local ids = {}
  for i = first, last, 5 do ids[#ids + 1] = ARGV[i] end
  local locks = redis.call('HMGET', KEYS[5], unpack(ids))
  local free, ended, outcomes, expiries, dead, over = {}, {}, {}, {}, {}, {}
  local is_settled = {}
  local count = {done = 0, cancelled = 0, failed = 0, dead = 0, forged = 0, retry = 0, back = 0}
  local is_awaited = redis.call('EXISTS', KEYS[21]) == 1
  for n, id in ipairs(ids) do
    local i = first + 5 * (n - 1)
    local verdict, outcome, ms = ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4])
    if is_settled[id] or locks[n] ~= mine .. ARGV[i + 1] then
      -- A report that was accepted before, whose reply got lost, is no news.
      if redis.call('HGET', KEYS[6], id) ~= outcome then refused[#refused + 1] = id end
    else
      is_settled[id] = true
      free[#free + 1] = id
      count[verdict] = count[verdict] + 1
      if verdict == 'forged' or verdict == 'failed' then
        verdict = 'dead'
        count.dead = count.dead + 1
      end
      if verdict == 'done' or verdict == 'cancelled' or verdict == 'dead' then
        over[#over + 1] = id
        if verdict == 'dead' then
          dead[#dead + 1] = now_text
          dead[#dead + 1] = id
        else
          ended[#ended + 1] = id
          if retention > 0 then
            expiries[#expiries + 1] = expiry_text
            expiries[#expiries + 1] = id
          end
        end
        -- A dead letter keeps its reason for as long as it is kept itself.
        if retention > 0 or verdict == 'dead' then
          outcomes[#outcomes + 1] = id
          outcomes[#outcomes + 1] = outcome
        end
        if is_awaited then tell(KEYS[21], id, outcome) end
      else
        is_odd = true
        if verdict == 'retry' then
          local attempts, deaths, steals = read_history(redis.call('HGET', KEYS[17], id))
          redis.call('HSET', KEYS[17], id, write_history(attempts + 1, deaths, steals))
        end
        if ms > 0 then
          redis.call('ZADD', KEYS[8], now + ms, id)
          redis.call('HDEL', KEYS[5], id)
        else
          give_back(inboxes, KEYS[4], KEYS[5], id)
        end
      end
    end
  end
  if #free == 0 then return end
  redis.call('HDEL', KEYS[5], unpack(free))
  redis.call('HDEL', KEYS[14], unpack(free))
  if #ended > 0 then
    redis.call('HDEL', KEYS[4], unpack(ended))
    if is_there(KEYS[17]) then redis.call('HDEL', KEYS[17], unpack(ended)) end
  end
  if #dead > 0 then
    is_odd = true
    redis.call('ZADD', KEYS[9], unpack(dead))
  end
  -- What comes back stays cancelled: whoever takes it next is told.
  if #over > 0 and is_there(KEYS[18]) then redis.call('SREM', KEYS[18], unpack(over)) end
  if #outcomes > 0 then redis.call('HSET', KEYS[6], unpack(outcomes)) end
  if #expiries > 0 then
    redis.call('ZADD', KEYS[7], unpack(expiries))
    expire(KEYS[6], KEYS[7], now, kept, math.min(#expiries, 1000))
  end
  for verdict, number in pairs(count) do
    if number > 0 then redis.call('HINCRBY', KEYS[16], verdict, number) end
  end
end

local token
local function new_token()
  if not token then token = redis.call('HINCRBY', KEYS[15], 'token', 1) end
  return token
end

-- What the worker was given but never learnt of goes back to the front of its deque,
-- under a new token: a call about it that is still on its way comes too late.
local function resynchronise(known)
  local is_known = {}
  for i = 10, 9 + known do is_known[ARGV[i]] = true end
  local held = redis.call('HGETALL', KEYS[14])
  for n = #held - 1, 1, -2 do
    local id = held[n]
    -- What must not be run twice and was begun stays, until its worker leaves or dies.
    if not is_known[id] and string.sub(held[n + 1], 1, 1) ~= '!' then
      redis.call('HDEL', KEYS[14], id)
      redis.call('LPUSH', KEYS[13], id)
      redis.call('HSET', KEYS[5], id, mine .. new_token())
    end
  end
end

-- A task that saw a worker die may be the reason. It runs alone, so that the next death,
-- if there is one, is put down to it and not to its neighbours. Nobody waits long for
-- that: what has run for five seconds is no reason to wait, nor under suspicion.
local function is_young(begun)
  return begun and now - tonumber((string.gsub(begun, '^!', ''))) < 5000
end

local function suspect_among(ids)
  if not is_there(KEYS[17]) then return nil end
  for n, text in ipairs(redis.call('HMGET', KEYS[17], unpack(ids))) do
    local _, deaths = read_history(text)
    if deaths > 0 then return n end
  end
end

local function holds_young()
  for _, begun in ipairs(redis.call('HVALS', KEYS[14])) do
    if is_young(begun) then return true end
  end
  return false
end

local function holds_suspect()
  if not is_there(KEYS[17]) then return false end
  local held = redis.call('HKEYS', KEYS[14])
  local suspect = #held > 0 and suspect_among(held)
  return suspect and is_young(redis.call('HGET', KEYS[14], held[suspect]))
end

-- No worker could name it, nor report on it. Whoever wrote it sees it among the dead.
local function bury(id)
  local reason = '{"state":"dead","reason":"its id is not UTF-8: no worker can name it"}'
  redis.call('HDEL', KEYS[5], id)
  redis.call('HSET', KEYS[6], id, reason)
  redis.call('ZADD', KEYS[9], now_text, id)
  redis.call('HINCRBY', KEYS[16], 'dead', 1)
  is_odd = true
end

-- Drop cancelled tasks from the front of an inbox, some hundred at a look.
local function pass_over(list)
  local ids, number = redis.call('LRANGE', list, 0, 499), 0
  if #ids == 0 or not is_there(KEYS[22]) then return end
  local is_grave = redis.call('SMISMEMBER', KEYS[22], unpack(ids))
  while is_grave[number + 1] == 1 do number = number + 1 end
  if number > 0 then
    redis.call('LPOP', list, number)
    redis.call('SREM', KEYS[22], unpack(ids, 1, number))
  end
end

local tasks, seen, alone, patience = {}, {}, false, 20
local function take_from(list, is_own)
  while want > 0 and not alone and patience > 0 do
    local wanted = want
    local ids = redis.call('LPOP', list, math.min(want, 500))
    if not ids or #ids == 0 then return end
    local suspect = suspect_among(ids)
    if suspect then
      local last = math.max(1, suspect - 1)
      if suspect == 1 and (#tasks > 0 or holds_young()) then last = 0 end
      for n = #ids, last + 1, -1 do redis.call('LPUSH', list, ids[n]) ids[n] = nil end
      if #ids == 0 then
        alone = true
        return
      end
    end
    local envelopes = redis.call('HMGET', KEYS[4], unpack(ids))
    local locks = redis.call('HMGET', KEYS[5], unpack(ids))
    local histories = is_there(KEYS[17]) and redis.call('HMGET', KEYS[17], unpack(ids))
    local begun, locked, gone = {}, {}, {}
    for n, id in ipairs(ids) do
      local lock, envelope = locks[n], envelopes[n]
      local is_free = is_own and lock and string.sub(lock, 1, #mine) == mine or not is_own and not lock
      local is_next = envelope and is_free and not seen[id]
      if is_next then seen[id] = true end
      if is_next and not is_utf8(id) then
        bury(id)
      elseif is_next then
        local held = lock and string.sub(lock, #mine + 1) or tostring(new_token())
        if not lock then
          locked[#locked + 1] = id
          locked[#locked + 1] = mine .. held
        end
        begun[#begun + 1] = id
        begun[#begun + 1] = now_text
        local attempts = histories and read_history(histories[n]) or 0
        tasks[#tasks + 1] = id
        tasks[#tasks + 1] = held
        tasks[#tasks + 1] = attempts + 1
        tasks[#tasks + 1] = envelope
        want = want - 1
      elseif not envelope then
        gone[#gone + 1] = id
      end
    end
    if suspect then alone = #tasks > 0 end
    if #begun > 0 then redis.call('HSET', KEYS[14], unpack(begun)) end
    if #locked > 0 then redis.call('HSET', KEYS[5], unpack(locked)) end
    if #gone > 0 then
      redis.call('HDEL', KEYS[5], unpack(gone))
      redis.call('SREM', KEYS[22], unpack(gone))
    end
    if want == wanted then
      patience = patience - 1
      pass_over(list)
    end
  end
end

-- A fair share of what is assigned to nobody, and no more than the worker wants to hold.
-- For a worker that is alone the inbox does as well, at less cost. What is urgent stays
-- where everybody looks first: in a deque it would stand behind what is not.
local function refill()
  local fellows = redis.call('ZCARD', KEYS[10])
  if fellows < 2 then return end
  local lengths = {0, redis.call('LLEN', KEYS[2]), redis.call('LLEN', KEYS[3])}
  local waiting = lengths[2] + lengths[3]
  if waiting == 0 then return end
  local share = math.ceil(waiting / fellows)
  local room = math.min(keep, share) - redis.call('LLEN', KEYS[13])
  for i, inbox in ipairs(inboxes) do
    local number = math.min(room, lengths[i], 1000)
    if number > 0 then
      local ids = redis.call('LPOP', inbox, number) or {}
      local locks = redis.call('HMGET', KEYS[5], unpack(ids))
      local is_grave = is_there(KEYS[22]) and redis.call('SMISMEMBER', KEYS[22], unpack(ids))
      local assigned, locked, gone = {}, {}, {}
      for n, id in ipairs(ids) do
        if is_grave and is_grave[n] == 1 then
          gone[#gone + 1] = id
        elseif not locks[n] and not seen[id] then
          seen[id] = true
          assigned[#assigned + 1] = id
          locked[#locked + 1] = id
          locked[#locked + 1] = mine .. new_token()
        end
      end
      room = room - #ids
      if #assigned > 0 then
        redis.call('RPUSH', KEYS[13], unpack(assigned))
        redis.call('HSET', KEYS[5], unpack(locked))
      end
      if #gone > 0 then redis.call('SREM', KEYS[22], unpack(gone)) end
    end
  end
end

local member = redis.call('HGET', KEYS[11], worker)
local known = tonumber(ARGV[9])
local refused = {}
for first = 10 + math.max(0, known), #ARGV, 5000 do
  settle(first, math.min(first + 4999, #ARGV), refused)
end
if not member or string.sub(member, 1, #incarnation + 1) ~= incarnation .. '|' then
  return {'lost'}
end
redis.call('ZADD', KEYS[10], now + lease, worker)
if known >= 0 then resynchronise(known) end
if want > 0 and is_odd then promote(inboxes, KEYS[4], KEYS[8], now, 100) end
if want > 0 and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[13]) > 0 then
  alone = holds_suspect()
  take_from(KEYS[1], false)
  take_from(KEYS[13], true)
  take_from(KEYS[2], false)
  take_from(KEYS[3], false)
  if not alone then refill() end
end

local load = redis.call('LLEN', KEYS[13])
if load > 0 then redis.call('ZADD', KEYS[12], load, worker) else redis.call('ZREM', KEYS[12], worker) end
local victims = {}
if want > 0 and #tasks == 0 and redis.call('EXISTS', KEYS[12]) == 1 then
  victims = redis.call('ZRANDMEMBER', KEYS[12], 3, 'WITHSCORES')
end
local cancelled = {}
if is_there(KEYS[18]) then
  for _, id in ipairs(redis.call('HKEYS', KEYS[14])) do
    if redis.call('SISMEMBER', KEYS[18], id) == 1 then cancelled[#cancelled + 1] = id end
  end
end
local overdue = 0
if now - tonumber(redis.call('HGET', KEYS[19], 'claimed') or 0) > tonumber(ARGV[8]) then
  redis.call('HSET', KEYS[19], 'claimed', now)
  overdue = 1
end
local unfinished, later = redis.call('HLEN', KEYS[4]), 0
if is_odd then
  unfinished = unfinished - redis.call('ZCARD', KEYS[9]) - redis.call('HLEN', KEYS[20])
  later = redis.call('ZCARD', KEYS[8])
end
return {'ok', tasks, refused, cancelled, victims,
  {now, unfinished, redis.call('HEXISTS', KEYS[15], 'closed'), overdue, later}}
