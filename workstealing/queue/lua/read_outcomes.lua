-- Read the outcomes of several tasks.
--
-- KEY task  hash  id -> envelope
-- KEY done  hash  id -> outcome
-- KEY dead  zset  id -> when it was given up
-- ARGS ids  str
--
-- Reply: for each 'ended' and the outcome; or 'pending', 'unknown', or 'lost' if a dead letter
-- has no outcome any more, and an empty string.

local reply = {}
for i = ids_at, #ARGV do
  local id = ARGV[i]
  local outcome, verdict = redis.call('HGET', done, id), 'ended'
  if not outcome then
    verdict = 'pending'
    if redis.call('HEXISTS', task, id) == 0 then
      verdict = 'unknown'
    elseif redis.call('ZSCORE', dead, id) then
      verdict = 'lost'
    end
  end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = outcome or ''
end
return reply
