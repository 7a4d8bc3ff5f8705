--- needs: clock, publish, load, uniques, lines, permits, wake_workers, hand_over
--- needs: outcome_times
--- needs rarely: biography
-- Take a task that waits out of its place. Its id may stay in an inbox, where it is passed
-- over: removing it there would take time in proportion to the inbox.
local function withdraw(id, holder)
  --- uses: lock, later, deque, loads, cancelled, parked, parked_for, parked_abilities
  --- uses: paused_tasks, aside, lines, priorities, worker, needs, steps
  if redis.call('HDEL', steps, id) == 1 then return end
  local is_delayed = redis.call('ZREM', later, id) == 1
  local is_parked = redis.call('HDEL', parked, id) == 1
  if is_parked then
    -- Perhaps nobody with this ability ever comes to clear it away.
    redis.call('ZREM', parked_for, id)
    if redis.call('EXISTS', parked_for) == 0 then
      redis.call('SREM', parked_abilities, needs)
    end
  end
  local line_place = redis.call('HGET', priorities, id)
  -- Its line may be empty then: whoever looks at it next finds out.
  local is_in_line = line_in(line_place)
    and redis.call('ZREM', lines, line_place .. '\0' .. id) == 1
  local place = redis.call('HGET', paused_tasks, id)
  if place then
    redis.call('HDEL', paused_tasks, id)
    redis.call('ZREM', aside, place .. '\0' .. id)
  end
  if holder then
    redis.call('LREM', deque, 1, id)
    return_permits({id})
    if unblocked > 0 then wake_workers(unblocked) end
    record_load(worker, redis.call('LLEN', deque))
  elseif not is_delayed and not is_parked and not is_in_line and not place then
    redis.call('HINCRBY', cancelled, id, 1)
  end
  redis.call('HDEL', lock, id)
end

-- Cancel a task that waits.
local function cancel_waiting(id, holder, outcome)
  --- uses: task, done, outcome_times, cancelling, priorities, stats
  --- uses: retention_ms, followers
  local now = now_ms()
  withdraw(id, holder)
  redis.call('HDEL', task, id)
  redis.call('SREM', cancelling, id)
  redis.call('HDEL', priorities, id)
  free_uniques({id}, 'ended')
  local is_followed = redis.call('HEXISTS', followers, id) == 1
  local is_kept = retention_ms > 0 or is_followed
  keep_biographies({id}, is_kept and {id, outcome} or {}, now)
  if is_kept then
    redis.call('HSET', done, id, outcome)
    redis.call('RPUSH', outcome_times, outcome_time(id, now + retention_ms))
  end
  redis.call('HINCRBY', stats, 'cancelled', 1)
  publish(id, outcome)
  if is_followed then hand_over({id}, {[id] = outcome}) end
end
