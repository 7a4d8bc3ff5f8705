--- needs: unusual, caller, history, put_into_inbox
-- Return a task that is unlocked: after a delay, or at once to the front of its inbox.
local function return_task(id, verdict, outcome, delay_ms)
  --- uses: task, later, history
  becomes_odd()
  if verdict == 'retry' then
    local attempts, deaths, steals, failures = read_history(redis.call('HGET', history, id))
    failures = add_failure(failures, outcome)
    redis.call('HSET', history, id, write_history(attempts + 1, deaths, steals, failures))
  end
  if delay_ms > 0 then
    redis.call('ZADD', later, now + delay_ms, id)
  elseif redis.call('HEXISTS', task, id) == 1 then
    put_into_inbox('LPUSH', id)
  end
end
