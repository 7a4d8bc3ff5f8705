-- Read on in the log of a task, and tell whether more can come.
--
-- KEYS[1]  log    stream  number, bytes ever written, record
-- KEYS[2]  task   hash    id -> envelope
-- KEYS[3]  dead   zset    id -> when it was given up
-- ARGV[1]  id     str
-- ARGV[2]  after  str     place of the last record that was read; 0-0: from the beginning
-- ARGV[3]  most   int     records told at most
--
-- Reply: 1 if the task has ended, else 0; then the place and the text of each record.

local is_over = redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 or redis.call('ZSCORE', KEYS[3], ARGV[1])
local reply = {is_over and 1 or 0}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][6]
end
return reply
