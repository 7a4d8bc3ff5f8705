--- needs: clock, tell
-- Cancel a task: at once if it waits, by asking its worker if it runs. Its id may stay
-- in an inbox, where it is passed over.
--
-- KEYS[1]  task     hash   id -> envelope
-- KEYS[2]  lock     hash   id -> worker#token
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  outbox   zset   id -> when its outcome expires
-- KEYS[5]  later    zset   id -> when it is due
-- KEYS[6]  dead     zset   id -> when it was given up
-- KEYS[7]  running  hash   id -> begun at; of the worker that holds it
-- KEYS[8]  cancels  set    ids whose workers are asked to stop
-- KEYS[9]  history  hash   id -> attempts:deaths:steals
-- KEYS[10] needs    hash   id -> ability it waits for
-- KEYS[11] stats    hash   counts
-- KEYS[12] awaited  hash   id -> channels of those who wait for its outcome
-- KEYS[13] graves   set    cancelled ids that an inbox still names
-- KEYS[14] deque    list   of the worker that holds it
-- KEYS[15] loads    zset   worker -> length of its deque
-- ARGV[1]  id         str
-- ARGV[2]  worker     str    who holds it, as last read; empty for nobody
-- ARGV[3]  outcome    str    of a cancelled task
-- ARGV[4]  retention  int    ms that an outcome is kept
--
-- Reply: 'unknown', 'ended', 'asked' or 'cancelled'; 'moved' if another worker has it.

local id, worker = ARGV[1], ARGV[2]
if redis.call('HEXISTS', KEYS[1], id) == 0 then
  return redis.call('HEXISTS', KEYS[3], id) == 1 and 'ended' or 'unknown'
end
if redis.call('ZSCORE', KEYS[6], id) then return 'ended' end
local lock = redis.call('HGET', KEYS[2], id)
local holder = lock and string.match(lock, '^(.*)#') or ''
if holder ~= worker then return 'moved' end
if lock and redis.call('HEXISTS', KEYS[7], id) == 1 then
  redis.call('SADD', KEYS[8], id)
  return 'asked'
end
local is_delayed = redis.call('ZREM', KEYS[5], id) == 1
local is_parked = redis.call('HDEL', KEYS[10], id) == 1
if lock then
  redis.call('LREM', KEYS[14], 1, id)
  local load = redis.call('LLEN', KEYS[14])
  if load > 0 then redis.call('ZADD', KEYS[15], load, worker) else redis.call('ZREM', KEYS[15], worker) end
elseif not is_delayed and not is_parked then
  redis.call('SADD', KEYS[13], id)
end
redis.call('HDEL', KEYS[1], id)
redis.call('HDEL', KEYS[2], id)
redis.call('SREM', KEYS[8], id)
redis.call('HDEL', KEYS[9], id)
if tonumber(ARGV[4]) > 0 then
  redis.call('HSET', KEYS[3], id, ARGV[3])
  redis.call('ZADD', KEYS[4], now_ms() + tonumber(ARGV[4]), id)
end
redis.call('HINCRBY', KEYS[11], 'cancelled', 1)
tell(KEYS[12], id, ARGV[3])
return 'cancelled'
