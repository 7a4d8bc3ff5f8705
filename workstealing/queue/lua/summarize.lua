--- needs: both_ends
-- Summarize tasks for a list. Of long texts only both ends are read.
--
-- KEY task     hash  id -> envelope
-- KEY lock     hash  id -> worker#token
-- KEY done     hash  id -> outcome
-- KEY history  hash  id -> attempts:deaths:steals
-- ARG most  int  bytes of an envelope or outcome that are read, about
-- ARGS ids  str
--
-- Reply: for each its envelope, the length of that, lock, outcome and history; an empty string
-- for each that is missing.

local reply = {}
for i = ids_at, #ARGV do
  local envelope = redis.call('HGET', task, ARGV[i]) or ''
  reply[#reply + 1] = both_ends(envelope)
  reply[#reply + 1] = #envelope
  reply[#reply + 1] = redis.call('HGET', lock, ARGV[i]) or ''
  reply[#reply + 1] = both_ends(redis.call('HGET', done, ARGV[i]) or '')
  reply[#reply + 1] = redis.call('HGET', history, ARGV[i]) or ''
end
return reply
