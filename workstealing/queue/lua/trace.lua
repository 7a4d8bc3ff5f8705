--- needs: clock
-- Read all that is known of a task, but for what its worker's own keys say.
--
-- KEY task        hash  id -> envelope
-- KEY lock        hash  id -> worker#token
-- KEY done        hash  id -> outcome
-- KEY later       zset  id -> when it is due
-- KEY dead        zset  id -> when it was given up
-- KEY parked      hash  id -> ability that it waits for
-- KEY history     hash  id -> attempts:deaths:steals
-- KEY cancelling  set   ids whose workers are asked to stop
-- KEY awaited     hash  id -> channels of those who wait for its outcome
-- ARG id       str
-- ARG channel  str  where the caller waits for the outcome; empty: nowhere
--
-- Reply: now, envelope, lock, outcome, due, given up, ability, history, asked to stop;
-- an empty string for what there is not.

local now = now_ms()
local envelope, outcome = redis.call('HGET', task, id), redis.call('HGET', done, id)
if channel ~= '' and envelope and not outcome then
  local channels = redis.call('HGET', awaited, id) or ''
  if not string.find(channels .. ' ', ' ' .. channel .. ' ', 1, true) then
    -- A caller that is not among the last few finds the outcome by looking again.
    channels = string.match(channels, ' %S+ %S+ %S+$') or channels
    redis.call('HSET', awaited, id, channels .. ' ' .. channel)
  end
end
return {
  now,
  envelope or '',
  redis.call('HGET', lock, id) or '',
  outcome or '',
  redis.call('ZSCORE', later, id) or '',
  redis.call('ZSCORE', dead, id) or '',
  redis.call('HGET', parked, id) or '',
  redis.call('HGET', history, id) or '',
  redis.call('SISMEMBER', cancelling, id),
}
