-- Keep a note of a running task: its progress, or a checkpoint to go on from.
--
-- KEY notes  hash  of: which submission; and what was noted
-- KEY lock   hash  id -> worker#token
-- ARG id       str
-- ARG holder   str  worker#token, as it was given out
-- ARG of       str  tells this task from another that had the same id
-- ARG what     str  progress or checkpoint
-- ARG value    str  JSON
-- ARG kept_ms  int  that it is kept
--
-- Reply: 1 if it was kept, 0 if the task is no longer this worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
if redis.call('HGET', notes, 'of') ~= of then redis.call('DEL', notes) end
redis.call('HSET', notes, 'of', of, what, value)
redis.call('PEXPIRE', notes, kept_ms)
return 1
