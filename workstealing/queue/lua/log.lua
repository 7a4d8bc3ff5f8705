-- Add a record to the log of a task, and forget the oldest above what is kept.
--
-- KEY log   stream  number, bytes ever written, record
-- KEY lock  hash    id -> worker#token
-- ARG id            str
-- ARG holder        str  worker#token, as it was given out
-- ARG number        str  of the record; the same one again is not added twice
-- ARG record        str
-- ARG most_records  int  that are kept
-- ARG most_bytes    int  that are kept, about
-- ARG kept_ms       int  that the log is kept after its last record
--
-- Reply: 1 if the log has it, 0 if the task is no longer this worker's.

if redis.call('HGET', lock, id) ~= holder then return 0 end
local name = holder .. ' ' .. number
local last, written = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1], 0
if last then
  if last[2][2] == name then return 1 end
  written = tonumber(last[2][4])
end
written = written + #record
redis.call('XADD', log, 'MAXLEN', most_records, '*',
  'n', name, 'b', string.format('%d', written), 'r', record)
for _ = 1, 100 do
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if written - tonumber(first[2][4]) < most_bytes then break end
  redis.call('XDEL', log, first[1])
end
redis.call('PEXPIRE', log, kept_ms)
return 1
