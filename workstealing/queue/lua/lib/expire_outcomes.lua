--- needs rarely: needed
-- Forget outcomes whose time is over, and the oldest above the number that is kept; but none
-- that a step still needs, if any may.
local function expire_outcomes(now, kept, most, is_any_followed)
  --- uses: done, outbox
  local over = redis.call('ZRANGE', outbox, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  if #over == 0 then
    local excess = redis.call('ZCARD', outbox) - kept
    if excess > 0 then
      over = redis.call('ZRANGE', outbox, 0, math.min(excess, most) - 1)
    end
  end
  if #over > 0 and is_any_followed then over = keep_needed(over, now) end
  if #over > 0 then
    redis.call('HDEL', done, unpack(over))
    redis.call('ZREM', outbox, unpack(over))
  end
  return #over
end
