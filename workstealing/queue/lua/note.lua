-- Keep something that a running task notes: how far it is, or where to go on.
--
-- KEYS[1]  notes  hash   of: which submission; and what was noted
-- KEYS[2]  lock   hash   id -> worker#token
-- ARGV[1]  id     str
-- ARGV[2]  lock   str    worker#token, as it was given out
-- ARGV[3]  of     str    tells this task from another that had the same id
-- ARGV[4]  what   str    progress or checkpoint
-- ARGV[5]  value  str    JSON
-- ARGV[6]  kept   int    ms that it is kept
--
-- Reply: 1 if it was kept, 0 if the task is no longer this worker's.

if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
if redis.call('HGET', KEYS[1], 'of') ~= ARGV[3] then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'of', ARGV[3], ARGV[4], ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
