-- Read more of a task's log, and tell whether there will be more.
--
-- KEY log   stream  number, bytes ever written, record
-- KEY task  hash    id -> envelope
-- KEY dead  zset    id -> when it was given up
-- ARG id     str
-- ARG after  str  place of the last record that was read; 0-0: from the beginning
-- ARG most   int  records read at most
--
-- Reply: 1 if the task has ended, else 0; then the place and the text of each record.

local is_over = redis.call('HEXISTS', task, id) == 0 or redis.call('ZSCORE', dead, id)
local reply = {is_over and 1 or 0}
for _, entry in ipairs(redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', most)) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][6]
end
return reply
