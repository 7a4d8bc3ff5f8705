--- needs: clock, token, load
-- Give the last job of a victim's deque to a thief, in flight, whatever the thief has.
-- The thief names the job that it saw there: so the same call twice takes nothing twice.
--
-- KEY deque    list  of the victim
-- KEY running  hash  id -> begun at; of the thief
-- KEY lock     hash  id -> worker#token
-- KEY loads    zset  worker -> length of its deque
-- KEY members  hash  worker -> incarnation|description
-- KEY control  hash  token
-- KEY stats    hash  counts
-- ARG victim  str  name
-- ARG thief   str  name
-- ARG id      str  the last job, as last read; empty if there was none
--
-- Reply: jobs that the victim has left; -1 if one of the two is gone, -2 if that job is
-- not the last one.

local both = redis.call('HMGET', members, victim, thief)
if not both[1] or not both[2] then return -1 end
local holder = redis.call('HGET', lock, id) or ''
if redis.call('LINDEX', deque, -1) ~= id or string.sub(holder, 1, #victim + 1) ~= victim .. '#' then
  return -2
end
redis.call('RPOP', deque)
redis.call('HSET', running, id, string.format('%d', now_ms()))
redis.call('HSET', lock, id, thief .. '#' .. new_token())
local left = redis.call('LLEN', deque)
record_load(victim, left)
redis.call('HINCRBY', stats, 'stolen', 1)
redis.call('HINCRBY', stats, 'stolen:' .. thief, 1)
return left
