-- Put tasks that were taken but not begun back to the front of the worker's own deque,
-- where thieves reach them. They get a new token, so that the same call, should it
-- arrive once more, does not take away what the worker has taken anew.
--
-- KEYS[1]  deque    list   of this worker
-- KEYS[2]  running  hash   id -> begun at; of this worker
-- KEYS[3]  lock     hash   id -> worker#token
-- KEYS[4]  loads    zset   worker -> length of its deque
-- KEYS[5]  control  hash   token
-- ARGV[1]  worker   str
-- ARGV[…]  tasks    str    id, token, id, token, … in the order of the deque
--
-- Reply: number of tasks released.

local released, token = 0, nil
for i = #ARGV - 1, 2, -2 do
  local id = ARGV[i]
  if redis.call('HGET', KEYS[3], id) == ARGV[1] .. '#' .. ARGV[i + 1]
      and redis.call('HDEL', KEYS[2], id) == 1 then
    token = token or redis.call('HINCRBY', KEYS[5], 'token', 1)
    redis.call('LPUSH', KEYS[1], id)
    redis.call('HSET', KEYS[3], id, ARGV[1] .. '#' .. token)
    released = released + 1
  end
end
local load = redis.call('LLEN', KEYS[1])
if load > 0 then redis.call('ZADD', KEYS[4], load, ARGV[1]) end
return released
