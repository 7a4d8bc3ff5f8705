--- needs: clock
-- Trim one sorted set or stream, the oldest first.
--
-- KEYS[1]  window  zset or stream
-- ARGV[1]  by      str    'age' or 'length'
-- ARGV[2]  bound   int    what is kept: ms, or a number of entries
-- ARGV[3]  most    int    upper bound on entries removed
-- ARGV[4]  unit    int    ms in one unit of the scores of a sorted set
--
-- Reply: number of entries removed; 1 if there is probably more, else 0.

local bound, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local oldest = math.max(0, now_ms() - bound)
if redis.call('TYPE', KEYS[1]).ok == 'stream' then
  local strategy, threshold = 'MAXLEN', ARGV[2]
  if ARGV[1] == 'age' then
    strategy, threshold = 'MINID', string.format('%.0f', oldest)
  end
  -- Only whole nodes go, of 100 entries unless configured: a lower limit removes none.
  local limit = math.max(most, 100)
  local removed = redis.call('XTRIM', KEYS[1], strategy, '~', threshold, 'LIMIT', limit)
  return {removed, removed > 0 and 1 or 0}
end
local over
if ARGV[1] == 'age' then
  local threshold = string.format('(%.3f', oldest / tonumber(ARGV[4]))
  over = redis.call('ZCOUNT', KEYS[1], '-inf', threshold)
else
  over = redis.call('ZCARD', KEYS[1]) - bound
end
if over <= 0 then return {0, 0} end
local removed = redis.call('ZREMRANGEBYRANK', KEYS[1], 0, math.min(over, most) - 1)
return {removed, removed < over and 1 or 0}
