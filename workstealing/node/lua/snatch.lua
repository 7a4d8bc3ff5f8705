-- Give the last job of a victim's deque to a thief, in flight, whatever the thief has.
-- The thief names the job that it saw there: so the same call twice takes nothing twice.
--
-- KEYS[1]  victim   list   its deque
-- KEYS[2]  running  hash   id -> begun at; of the thief
-- KEYS[3]  lock     hash   id -> worker#token
-- KEYS[4]  loads    zset   worker -> length of its deque
-- KEYS[5]  members  hash   worker -> incarnation|description
-- KEYS[6]  control  hash   token
-- KEYS[7]  stats    hash   counts
-- ARGV[1]  victim   str    name
-- ARGV[2]  thief    str    name
-- ARGV[3]  id       str    the last job, as last read; empty if there was none
--
-- Reply: jobs that the victim has left; -1 if one of the two is gone, -2 if that job is
-- not the last one.

local victim, thief, id = ARGV[1], ARGV[2], ARGV[3]
local members = redis.call('HMGET', KEYS[5], victim, thief)
if not members[1] or not members[2] then return -1 end
local lock = redis.call('HGET', KEYS[3], id) or ''
if redis.call('LINDEX', KEYS[1], -1) ~= id or string.sub(lock, 1, #victim + 1) ~= victim .. '#' then
  return -2
end
redis.call('RPOP', KEYS[1])
local time = redis.call('TIME')
redis.call('HSET', KEYS[2], id, string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('HSET', KEYS[3], id, thief .. '#' .. redis.call('HINCRBY', KEYS[6], 'token', 1))
local left = redis.call('LLEN', KEYS[1])
if left > 0 then redis.call('ZADD', KEYS[4], left, victim) else redis.call('ZREM', KEYS[4], victim) end
redis.call('HINCRBY', KEYS[7], 'stolen', 1)
redis.call('HINCRBY', KEYS[7], 'stolen:' .. thief, 1)
return left
