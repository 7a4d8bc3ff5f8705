--- needs: both_ends
-- Summarize tasks for a list. Of long texts only both ends are read.
--
-- KEY task     hash  id -> envelope
-- KEY lock     hash  id -> worker#token
-- KEY done     hash  id -> outcome
-- KEY history  hash  id -> attempts:deaths:steals:events, then failures
-- ARG most  int  bytes of an envelope or outcome that are read, about
-- ARGS ids  str  one at least
--
-- Reply: for each its envelope, the length of that, lock, outcome and history; an empty string
-- for each that is missing.

local envelopes = redis.call('HMGET', task, unpack(ARGV, ids_at))
local locks = redis.call('HMGET', lock, unpack(ARGV, ids_at))
local outcomes = redis.call('HMGET', done, unpack(ARGV, ids_at))
local histories = redis.call('HMGET', history, unpack(ARGV, ids_at))
local reply = {}
for n = 1, #ARGV - ids_at + 1 do
  local envelope = envelopes[n] or ''
  reply[#reply + 1] = both_ends(envelope)
  reply[#reply + 1] = #envelope
  reply[#reply + 1] = locks[n] or ''
  reply[#reply + 1] = both_ends(outcomes[n] or '')
  reply[#reply + 1] = histories[n] or ''
end
return reply
