--- needs: clock
-- Tell all that is known of a task, but for what its worker's own keys say.
--
-- KEYS[1]  task     hash   id -> envelope
-- KEYS[2]  lock     hash   id -> worker#token
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  later    zset   id -> when it is due
-- KEYS[5]  dead     zset   id -> when it was given up
-- KEYS[6]  needs    hash   id -> ability it waits for
-- KEYS[7]  history  hash   id -> attempts:deaths:steals
-- KEYS[8]  cancels  set    ids whose workers are asked to stop
-- KEYS[9]  awaited  hash   id -> channels of those who wait for its outcome
-- ARGV[1]  id       str
-- ARGV[2]  channel  str    where the caller listens for the outcome; empty: nowhere
--
-- Reply: now, envelope, lock, outcome, due, given up, ability, history, asked to stop;
-- an empty string for what there is not.

local id, now = ARGV[1], now_ms()
local envelope, outcome = redis.call('HGET', KEYS[1], id), redis.call('HGET', KEYS[3], id)
if ARGV[2] ~= '' and envelope and not outcome then
  local channels = redis.call('HGET', KEYS[9], id) or ''
  if not string.find(channels .. ' ', ' ' .. ARGV[2] .. ' ', 1, true) then
    -- Whoever is not among the last few finds the outcome by looking again.
    channels = string.match(channels, ' %S+ %S+ %S+$') or channels
    redis.call('HSET', KEYS[9], id, channels .. ' ' .. ARGV[2])
  end
end
return {
  now,
  envelope or '',
  redis.call('HGET', KEYS[2], id) or '',
  outcome or '',
  redis.call('ZSCORE', KEYS[4], id) or '',
  redis.call('ZSCORE', KEYS[5], id) or '',
  redis.call('HGET', KEYS[6], id) or '',
  redis.call('HGET', KEYS[7], id) or '',
  redis.call('SISMEMBER', KEYS[8], id),
}
