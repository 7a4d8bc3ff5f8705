-- Put jobs at the back of a worker's deque: new ones, or those that wait in the inbox.
-- A new one that is known already stays where it is. One that was cancelled is passed over.
--
-- KEYS[1]  deque    list   of the worker
-- KEYS[2]  inbox    list   jobs that wait for a worker to come
-- KEYS[3]  task     hash   id -> envelope
-- KEYS[4]  lock     hash   id -> worker#token
-- KEYS[5]  loads    zset   worker -> length of its deque
-- KEYS[6]  members  hash   worker -> incarnation|description
-- KEYS[7]  control  hash   token
-- KEYS[8]  stats    hash   counts
-- ARGV[1]  worker    str
-- ARGV[2]  envelope  str    of new jobs; empty for those that wait in the inbox
-- ARGV[…]  ids       str
--
-- Reply: 'gone' if there is no such worker; or 'ok', then the ids that were placed.

local worker, envelope = ARGV[1], ARGV[2]
if redis.call('HEXISTS', KEYS[6], worker) == 0 then return {'gone'} end
local reply, token = {'ok'}, nil
for n = 3, #ARGV do
  local id = ARGV[n]
  local is_fit
  if envelope == '' then
    is_fit = redis.call('LREM', KEYS[2], 1, id) == 1
      and redis.call('HEXISTS', KEYS[3], id) == 1 and redis.call('HEXISTS', KEYS[4], id) == 0
  else
    is_fit = redis.call('HSETNX', KEYS[3], id, envelope) == 1
  end
  if is_fit then
    token = token or redis.call('HINCRBY', KEYS[7], 'token', 1)
    redis.call('HSET', KEYS[4], id, worker .. '#' .. token)
    redis.call('ZADD', KEYS[5], redis.call('RPUSH', KEYS[1], id), worker)
    reply[#reply + 1] = id
  end
end
if envelope ~= '' and #reply > 1 then redis.call('HINCRBY', KEYS[8], 'submitted', #reply - 1) end
return reply
