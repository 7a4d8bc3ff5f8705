--- needs: clock, history, inboxes, dismiss, ring, give_up
-- Give back what a dead worker held, waiting or running. It is dead when its lease is
-- over: that is looked at here, so a worker that came back in time keeps everything.
-- A task whose workers died too often is given up, and so is one that must not be run
-- twice and was begun.
--
-- KEYS[1]   inbox0   list   urgent
-- KEYS[2]   inbox1   list   normal
-- KEYS[3]   inbox2   list   when there is nothing else
-- KEYS[4]   task     hash   id -> envelope
-- KEYS[5]   lock     hash   id -> worker#token
-- KEYS[6]   workers  zset   worker -> end of its lease
-- KEYS[7]   members  hash   worker -> incarnation|description
-- KEYS[8]   loads    zset   worker -> length of its deque
-- KEYS[9]   deque    list   of the dead worker
-- KEYS[10]  running  hash   id -> begun at, after ! if it must not come back; of the dead worker
-- KEYS[11]  able     hash   name@version -> workers that can run it
-- KEYS[12]  stats    hash   counts
-- KEYS[13]  bell     list   wake-ups for idle workers
-- KEYS[14]  done     hash   id -> outcome
-- KEYS[15]  dead     zset   id -> when it was given up
-- KEYS[16]  history  hash   id -> attempts:deaths:steals
-- KEYS[17]  cancels  set    ids whose workers are asked to stop
-- KEYS[18]  awaited  hash   id -> channels of those who wait for its outcome
-- ARGV[1]   worker     str
-- ARGV[2]   most       int   tasks given back at most
-- ARGV[3]   deaths     int   that a task may see
-- ARGV[4]   outcome    str   of a task that is given up
-- ARGV[5]   unknown    str   outcome of a task that must not be run twice
--
-- Reply: -1 if the worker lives, else tasks given back.

local now, worker, most = now_ms(), ARGV[1], tonumber(ARGV[2])
local lease = redis.call('ZSCORE', KEYS[6], worker)
if lease and tonumber(lease) > now then return -1 end
local inboxes, mine, returned = {KEYS[1], KEYS[2], KEYS[3]}, worker .. '#', 0

local function holds(id)
  local lock = redis.call('HGET', KEYS[5], id)
  return lock and string.sub(lock, 1, #mine) == mine
end

local places = {
  lock = KEYS[5], stats = KEYS[12], done = KEYS[14], dead = KEYS[15],
  history = KEYS[16], cancels = KEYS[17], awaited = KEYS[18],
}

for _, id in ipairs(redis.call('RPOP', KEYS[9], most) or {}) do
  if holds(id) then
    give_back(inboxes, KEYS[4], KEYS[5], id)
    returned = returned + 1
  end
end
local running = redis.call('HGETALL', KEYS[10])
for n = #running - 1, 1, -2 do
  local id = running[n]
  if returned >= most then break end
  redis.call('HDEL', KEYS[10], id)
  if holds(id) then
    local attempts, deaths, steals = read_history(redis.call('HGET', KEYS[16], id))
    if string.sub(running[n + 1], 1, 1) == '!' then
      give_up(id, now, ARGV[5], places)
    elseif deaths + 1 >= tonumber(ARGV[3]) then
      give_up(id, now, ARGV[4], places)
    else
      redis.call('HSET', KEYS[16], id, write_history(attempts, deaths + 1, steals))
      give_back(inboxes, KEYS[4], KEYS[5], id)
    end
    returned = returned + 1
  end
end
if returned > 0 then
  redis.call('HINCRBY', KEYS[12], 'reassigned', returned)
  ring(KEYS[13], returned)
end
local load = redis.call('LLEN', KEYS[9])
if load == 0 and redis.call('HLEN', KEYS[10]) == 0 then
  dismiss(worker, KEYS[6], KEYS[7], KEYS[8], KEYS[11], KEYS[12])
elseif load == 0 then
  redis.call('ZREM', KEYS[8], worker)
else
  redis.call('ZADD', KEYS[8], load, worker)
end
return returned
