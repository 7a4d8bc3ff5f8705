--- needs: unusual, caller, expire_outcomes, publish, outcome_times
--- needs rarely: return_task, give_up, permits, uniques, hand_over, biography
-- Settle the reports in ARGV[first] to ARGV[last], five values each, and append the ids of
-- refused ones to a list. A report counts only if the task is still locked to this worker
-- by the token that it names; repeating an accepted report changes nothing.

local function settle(first, last, refused)
  --- uses: task, lock, done, outcome_times, running, stats, history, cancelling, priorities
  --- uses: permit_holders, unique_of, retention_ms, most_outcomes, followers, renews
  local ids = {}
  for i = first, last, 5 do ids[#ids + 1] = ARGV[i] end
  local holders = redis.call('HMGET', lock, unpack(ids))
  local freed, ended, outcomes, times, given_up, returned = {}, {}, {}, {}, {}, {}
  local is_settled, failures = {}, {}
  local is_any_followed = is_there(followers)
  local marks = is_any_followed and redis.call('HMGET', followers, unpack(ids))
  local count = {done = 0, cancelled = 0, expired = 0, failed = 0, forged = 0, retry = 0, back = 0}
  local expires_at = now + retention_ms
  for n, id in ipairs(ids) do
    local i = first + 5 * (n - 1)
    local verdict, outcome = ARGV[i + 2], ARGV[i + 3]
    if is_settled[id] or holders[n] ~= mine .. ARGV[i + 1] then
      -- A report that was accepted before, whose reply got lost, is no news.
      if redis.call('HGET', done, id) ~= outcome then refused[#refused + 1] = id end
    else
      is_settled[id] = true
      freed[#freed + 1] = id
      if count[verdict] then count[verdict] = count[verdict] + 1 end
      if verdict == 'done' or verdict == 'cancelled' or verdict == 'expired' then
        ended[#ended + 1] = id
        if verdict ~= 'done' then failures[id] = outcome end
        -- What is not kept for its caller is kept for the step that takes it.
        if retention_ms > 0 or marks and marks[n] then
          outcomes[#outcomes + 1] = id
          outcomes[#outcomes + 1] = outcome
          times[#times + 1] = outcome_time(id, expires_at)
        end
        publish(id, outcome)
      elseif verdict == 'retry' or verdict == 'back' then
        returned[#returned + 1] = i
      else
        given_up[#given_up + 1] = id
        given_up[#given_up + 1] = outcome
      end
    end
  end
  if #freed == 0 then return end
  local taken_at = {}
  if #returned > 0 then
    local names = {}
    for n, i in ipairs(returned) do names[n] = ARGV[i] end
    taken_at = redis.call('HMGET', running, unpack(names))
  end
  -- This comes first: a full server refuses what may grow until something was written.
  redis.call('HDEL', running, unpack(freed))
  redis.call('HDEL', lock, unpack(freed))
  if is_there(permit_holders) then return_permits(freed) end
  for n, i in ipairs(returned) do
    return_task(ARGV[i], ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4]), taken_at[n])
  end
  if #ended > 0 then
    redis.call('HDEL', task, unpack(ended))
    if is_there(history) then keep_biographies(ended, outcomes, now) end
    if has_priorities then redis.call('HDEL', priorities, unpack(ended)) end
    if is_there(unique_of) then free_uniques(ended, 'ended') end
    -- A task that comes back stays cancelled: its next worker is asked to stop it.
    if is_there(cancelling) then redis.call('SREM', cancelling, unpack(ended)) end
  end
  if #given_up > 0 then
    becomes_odd()
    give_up(given_up)
  end
  if is_any_followed then
    if #ended > 0 then hand_over(ended, failures) end
    -- A step may have gone to a line, or be due later.
    becomes_odd()
    has_priorities = true
  end
  if #outcomes > 0 then
    redis.call('HSET', done, unpack(outcomes))
    redis.call('RPUSH', outcome_times, unpack(times))
    -- With few outcomes at a time, the others are looked at now and then.
    local few, most = 10, 1000
    local is_time = renews or now % 16 == 0
    if is_time or #times > few then
      expire_outcomes(now, most_outcomes, is_time and most or math.min(2 * #times, most),
        is_any_followed)
    end
  end
  for verdict, number in pairs(count) do
    if number > 0 then redis.call('HINCRBY', stats, verdict, number) end
  end
end
