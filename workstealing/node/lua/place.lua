--- needs: token
-- Put jobs at the back of a worker's deque: new ones, or those that wait in the inbox,
-- among its first 500.
-- A new one that is known already stays where it is. One that was cancelled is passed over.
--
-- KEY deque    list  of the worker
-- KEY inbox    list  jobs that wait for a worker to come
-- KEY task     hash  id -> envelope
-- KEY lock     hash  id -> worker#token
-- KEY loads    zset  worker -> length of its deque
-- KEY members  hash  worker -> incarnation|description
-- KEY control  hash  token
-- KEY stats    hash  counts
-- ARG worker    str
-- ARG envelope  str  of new jobs; empty for those that wait in the inbox
-- ARGS ids      str
--
-- Reply: 'gone' if there is no such worker; or 'ok', then the ids that were placed.

if redis.call('HEXISTS', members, worker) == 0 then return {'gone'} end
local reply = {'ok'}
-- Only the front is looked at: another node may have placed them, and then the whole inbox
-- would be searched for each.
local is_waiting, front = {}, {}
if envelope == '' then
  front = redis.call('LRANGE', inbox, 0, 499)
  for _, id in ipairs(front) do is_waiting[id] = true end
end
local is_taken = {}
for n = ids_at, #ARGV do
  local id = ARGV[n]
  local is_fit
  if envelope == '' then
    is_taken[id] = is_waiting[id]
    is_fit = is_waiting[id]
      and redis.call('HEXISTS', task, id) == 1 and redis.call('HEXISTS', lock, id) == 0
  else
    is_fit = redis.call('HSETNX', task, id, envelope) == 1
  end
  if is_fit then
    redis.call('HSET', lock, id, worker .. '#' .. new_token())
    redis.call('ZADD', loads, redis.call('RPUSH', deque, id), worker)
    reply[#reply + 1] = id
  end
end
if next(is_taken) then
  local left = {}
  for n = #front, 1, -1 do
    if not is_taken[front[n]] then left[#left + 1] = front[n] end
  end
  redis.call('LTRIM', inbox, #front, -1)
  if #left > 0 then redis.call('LPUSH', inbox, unpack(left)) end
end
if envelope ~= '' and #reply > 1 then redis.call('HINCRBY', stats, 'submitted', #reply - 1) end
return reply
