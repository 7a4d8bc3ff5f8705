-- Park a task that this worker cannot run until a worker joins that can.
--
-- KEY parked_for        list  ids that wait for this ability
-- KEY parked_abilities  set   abilities that something is parked for
-- KEY parked            hash  id -> ability that it waits for
-- KEY running           hash  id -> begun at; of this worker
-- KEY lock              hash  id -> worker#token
-- ARG id       str
-- ARG holder   str  worker#token, as it was given out
-- ARG ability  str  name@version
--
-- Reply: 1 if it was parked, 0 if the task is no longer this worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
redis.call('HDEL', lock, id)
redis.call('HDEL', running, id)
redis.call('RPUSH', parked_for, id)
redis.call('SADD', parked_abilities, ability)
redis.call('HSET', parked, id, ability)
return 1
