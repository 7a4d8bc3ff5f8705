--- needs: clock, history, inboxes, give_up
-- Take a worker on. If another incarnation has its name, that one is taken for dead:
-- what it was running goes back to the inboxes, or is given up if its workers died too
-- often or if it must not be run twice; what waits in the deque is inherited.
--
-- KEYS[1]   inbox0   list   urgent
-- KEYS[2]   inbox1   list   normal
-- KEYS[3]   inbox2   list   when there is nothing else
-- KEYS[4]   task     hash   id -> envelope
-- KEYS[5]   lock     hash   id -> worker#token
-- KEYS[6]   workers  zset   worker -> end of its lease
-- KEYS[7]   members  hash   worker -> incarnation|description
-- KEYS[8]   running  hash   id -> begun at, after ! if it must not come back; of this worker
-- KEYS[9]   history  hash   id -> attempts:deaths:steals
-- KEYS[10]  able     hash   name@version -> workers that can run it
-- KEYS[11]  done     hash   id -> outcome
-- KEYS[12]  dead     zset   id -> when it was given up
-- KEYS[13]  cancels  set    ids whose workers are asked to stop
-- KEYS[14]  stats    hash   counts
-- KEYS[15]  awaited  hash   id -> channels of those who wait for its outcome
-- ARGV[1]   worker       str
-- ARGV[2]   incarnation  str
-- ARGV[3]   lease        int   ms
-- ARGV[4]   description  str   JSON, with its abilities as a list
-- ARGV[5]   deaths       int   that a task may see
-- ARGV[6]   outcome      str   of a task that is given up
-- ARGV[7]   unknown      str   outcome of a task that must not be run twice
--
-- Reply: the server's time, ms.

local now = now_ms()
local inboxes = {KEYS[1], KEYS[2], KEYS[3]}

local function count(member, by)
  local description = cjson.decode(string.match(member, '|(.*)$'))
  for _, ability in ipairs(description.abilities) do
    if redis.call('HINCRBY', KEYS[10], ability, by) <= 0 then
      redis.call('HDEL', KEYS[10], ability)
    end
  end
end

local member = ARGV[2] .. '|' .. ARGV[4]
local former = redis.call('HGET', KEYS[7], ARGV[1])
redis.call('ZADD', KEYS[6], now + tonumber(ARGV[3]), ARGV[1])
if former == member then return now end
if former then
  count(former, -1)
  local places = {
    lock = KEYS[5], history = KEYS[9], done = KEYS[11], dead = KEYS[12],
    cancels = KEYS[13], stats = KEYS[14], awaited = KEYS[15],
  }
  local running = redis.call('HGETALL', KEYS[8])
  for n = #running - 1, 1, -2 do
    local id = running[n]
    local attempts, deaths, steals = read_history(redis.call('HGET', KEYS[9], id))
    if string.sub(running[n + 1], 1, 1) == '!' then
      give_up(id, now, ARGV[7], places)
    elseif deaths + 1 >= tonumber(ARGV[5]) then
      give_up(id, now, ARGV[6], places)
    else
      redis.call('HSET', KEYS[9], id, write_history(attempts, deaths + 1, steals))
      give_back(inboxes, KEYS[4], KEYS[5], id)
    end
  end
  redis.call('DEL', KEYS[8])
end
count(member, 1)
redis.call('HSET', KEYS[7], ARGV[1], member)
return now
