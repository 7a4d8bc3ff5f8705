--- needs: outcome_times
--- needs rarely: needed, purged
-- Forget outcomes whose time is over, and the oldest above the number that is kept; but none
-- that a step still needs, if any may.

local function expire_outcomes(now, kept, most, is_any_followed)
  --- uses: done, dead, outcome_times, purged, biographies
  local _, first = read_outcome_time(redis.call('LINDEX', outcome_times, 0))
  local excess = 0
  if not first or first > now then
    excess = redis.call('HLEN', done) - kept
    if excess > 0 then excess = excess - redis.call('ZCARD', dead) end
    if excess <= 0 then return 0 end
  end
  -- A key that is named twice counts twice: one command tells of both.
  local there = redis.call('EXISTS', purged, biographies, biographies)
  local is_any_purged, has_biographies = there % 2 == 1, there >= 2
  local step, looked_at, forgotten = 100, 0, 0
  repeat
    local over, last = {}, math.min(step, most - looked_at)
    for n, text in ipairs(redis.call('LRANGE', outcome_times, 0, last - 1)) do
      local id, expires_at = read_outcome_time(text)
      if expires_at > now and looked_at + n > excess then break end
      over[n] = id
    end
    looked_at = looked_at + #over
    local is_last = #over < last
    if #over > 0 then
      redis.call('LPOP', outcome_times, #over)
      if is_any_purged then over = without_purged(over) end
      if is_any_followed and #over > 0 then over = keep_needed(over, now) end
      if #over > 0 then
        redis.call('HDEL', done, unpack(over))
        if has_biographies then redis.call('HDEL', biographies, unpack(over)) end
        forgotten = forgotten + #over
      end
    end
  until is_last or looked_at >= most
  return forgotten
end
