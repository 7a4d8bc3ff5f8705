-- Put aside a task that this worker cannot run, until one joins that can.
--
-- KEYS[1]  parked    list   ids that need this ability
-- KEYS[2]  parkings  set    abilities that something is parked for
-- KEYS[3]  needs     hash   id -> ability it waits for
-- KEYS[4]  running   hash   id -> begun at; of this worker
-- KEYS[5]  lock      hash   id -> worker#token
-- ARGV[1]  id        str
-- ARGV[2]  lock      str    worker#token, as it was given out
-- ARGV[3]  ability   str    name@version
--
-- Reply: 1 if it was parked, 0 if the task is no longer this worker's.

if redis.call('HGET', KEYS[5], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[5], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
return 1
