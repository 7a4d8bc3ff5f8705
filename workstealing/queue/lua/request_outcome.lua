--- needs: first_write
-- Read the outcome of a task, or have it published on a channel when the task ends.
--
-- KEY task     hash  id -> envelope
-- KEY done     hash  id -> outcome
-- KEY dead     zset  id -> when it was given up
-- KEY awaited  hash  id -> channels to publish its outcome on
-- ARG id       str
-- ARG channel  str  where the caller listens
--
-- Reply: 'ended' and the outcome, 'requested', 'unknown', or 'lost' if a dead letter has
-- no outcome any more.

local outcome = redis.call('HGET', done, id)
if outcome then return {'ended', outcome} end
if redis.call('HEXISTS', task, id) == 0 then return {'unknown'} end
if redis.call('ZSCORE', dead, id) then return {'lost'} end
local channels = redis.call('HGET', awaited, id) or ''
if not string.find(' ' .. channels .. ' ', ' ' .. channel .. ' ', 1, true) then
  -- Only the last few are kept. The others find the outcome by asking again.
  channels = (string.match(channels, ' %S+ %S+ %S+$') or channels) .. ' ' .. channel
end
-- Written even if it is there: a primary that became a replica refuses to write, which tells a
-- caller that still waits there.
first_write('HSET', awaited, id, channels)
return {'requested'}
