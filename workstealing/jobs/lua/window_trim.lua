--- needs: clock
-- Trim one sorted set or stream, the oldest first.
--
-- KEY window  zset or stream
-- ARG by     str  'age' or 'length'
-- ARG bound  int  what is kept: ms, or a number of entries
-- ARG most   int  upper bound on entries removed
-- ARG unit   int  ms in one unit of the scores of a sorted set
--
-- Reply: number of entries removed; 1 if there is probably more, else 0.

local oldest = math.max(0, now_ms() - bound)
if redis.call('TYPE', window).ok == 'stream' then
  local strategy, threshold = 'MAXLEN', bound
  if by == 'age' then
    strategy, threshold = 'MINID', string.format('%.0f', oldest)
  end
  -- Only whole nodes go, of 100 entries unless configured: a lower limit removes none.
  local limit = math.max(most, 100)
  local removed = redis.call('XTRIM', window, strategy, '~', threshold, 'LIMIT', limit)
  return {removed, removed > 0 and 1 or 0}
end
local over
if by == 'age' then
  local threshold = string.format('(%.3f', oldest / unit)
  over = redis.call('ZCOUNT', window, '-inf', threshold)
else
  over = redis.call('ZCARD', window) - bound
end
if over <= 0 then return {0, 0} end
local removed = redis.call('ZREMRANGEBYRANK', window, 0, math.min(over, most) - 1)
return {removed, removed < over and 1 or 0}
