--- needs: clock, inboxes, dismiss, ring, give_up
-- Hand back what a worker holds, begun or not, without counting an attempt; then strike
-- it off. What must not be run twice and was begun is given up instead. Called again
-- until nothing is left.
--
-- KEYS[1]   inbox0   list   urgent
-- KEYS[2]   inbox1   list   normal
-- KEYS[3]   inbox2   list   when there is nothing else
-- KEYS[4]   task     hash   id -> envelope
-- KEYS[5]   lock     hash   id -> worker#token
-- KEYS[6]   workers  zset   worker -> end of its lease
-- KEYS[7]   members  hash   worker -> incarnation|description
-- KEYS[8]   loads    zset   worker -> length of its deque
-- KEYS[9]   deque    list   of this worker
-- KEYS[10]  running  hash   id -> begun at, after ! if it must not come back; of this worker
-- KEYS[11]  able     hash   name@version -> workers that can run it
-- KEYS[12]  stats    hash   counts
-- KEYS[13]  bell     list   wake-ups for idle workers
-- KEYS[14]  done     hash   id -> outcome
-- KEYS[15]  dead     zset   id -> when it was given up
-- KEYS[16]  history  hash   id -> attempts:deaths:steals
-- KEYS[17]  cancels  set    ids whose workers are asked to stop
-- KEYS[18]  awaited  hash   id -> channels of those who wait for its outcome
-- ARGV[1]   worker       str
-- ARGV[2]   incarnation  str
-- ARGV[3]   most         int   tasks handed back at most
-- ARGV[4]   final        int   0: it stays a member and goes on with what it runs
-- ARGV[5]   unknown      str   outcome of a task that must not be run twice
--
-- Reply: tasks handed back or given up, tasks left.

local worker, most = ARGV[1], tonumber(ARGV[3])
local member = redis.call('HGET', KEYS[7], worker)
if not member or string.sub(member, 1, #ARGV[2] + 1) ~= ARGV[2] .. '|' then return {0, 0} end
local inboxes, mine, returned = {KEYS[1], KEYS[2], KEYS[3]}, worker .. '#', 0

local places = {
  lock = KEYS[5], stats = KEYS[12], done = KEYS[14], dead = KEYS[15],
  history = KEYS[16], cancels = KEYS[17], awaited = KEYS[18],
}

local function hand_back(id, is_final)
  local lock = redis.call('HGET', KEYS[5], id)
  if lock and string.sub(lock, 1, #mine) == mine then
    if is_final then
      give_up(id, now_ms(), ARGV[5], places)
    else
      give_back(inboxes, KEYS[4], KEYS[5], id)
    end
    returned = returned + 1
  end
end

-- From the back to the front, so that the order is kept when each is put in front.
for _, id in ipairs(redis.call('RPOP', KEYS[9], most) or {}) do hand_back(id) end
if ARGV[4] == '1' then
  local running = redis.call('HGETALL', KEYS[10])
  for n = #running - 1, 1, -2 do
    if returned >= most then break end
    redis.call('HDEL', KEYS[10], running[n])
    hand_back(running[n], string.sub(running[n + 1], 1, 1) == '!')
  end
end
if returned > 0 then ring(KEYS[13], returned) end

local load = redis.call('LLEN', KEYS[9])
local left = load
if ARGV[4] == '1' then left = left + redis.call('HLEN', KEYS[10]) end
if left == 0 and ARGV[4] == '1' then
  dismiss(worker, KEYS[6], KEYS[7], KEYS[8], KEYS[11], KEYS[12])
elseif load == 0 then
  redis.call('ZREM', KEYS[8], worker)
else
  redis.call('ZADD', KEYS[8], load, worker)
end
return {returned, left}
