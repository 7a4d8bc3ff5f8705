-- Add a record to the log of a task, and forget the oldest above what is kept.
--
-- KEYS[1]  log      stream  number, bytes ever written, record
-- KEYS[2]  lock     hash    id -> worker#token
-- ARGV[1]  id       str
-- ARGV[2]  lock     str     worker#token, as it was given out
-- ARGV[3]  number   str     of the record; the same one again is not added twice
-- ARGV[4]  record   str
-- ARGV[5]  records  int     kept at most
-- ARGV[6]  bytes    int     kept at most, about
-- ARGV[7]  kept     int     ms that the log is kept after its last record
--
-- Reply: 1 if the log has it, 0 if the task is no longer this worker's.

if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local number = ARGV[2] .. ' ' .. ARGV[3]
local last, written = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1], 0
if last then
  if last[2][2] == number then return 1 end
  written = tonumber(last[2][4])
end
written = written + #ARGV[4]
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[5], '*',
  'n', number, 'b', string.format('%d', written), 'r', ARGV[4])
for _ = 1, 100 do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if written - tonumber(first[2][4]) < tonumber(ARGV[6]) then break end
  redis.call('XDEL', KEYS[1], first[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return 1
