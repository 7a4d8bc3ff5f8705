--- needs: unusual, caller, history, put_into_inbox
-- Return a task that is unlocked: after a delay, or at once to the front of its inbox.
local function return_task(id, verdict, outcome, delay_ms, taken_at)
  --- uses: task, later, history, worker
  becomes_odd()
  if redis.call('HEXISTS', task, id) == 0 then return end
  local attempts, deaths, steals, failures, events = read_history(redis.call('HGET', history, id))
  local letter = delay_ms > 0 and 'z' or 'h'
  if verdict == 'retry' then
    attempts, failures, letter = attempts + 1, add_failure(failures, outcome), 'f'
  end
  events = add_taken(events, taken_at, worker)
  local due = delay_ms > 0 and event('q', now + delay_ms) or nil
  events = add_events(events, {event(letter, now, worker), due})
  redis.call('HSET', history, id, write_history(attempts, deaths, steals, failures, events))
  if delay_ms > 0 then
    redis.call('ZADD', later, now + delay_ms, id)
  else
    put_into_inbox('LPUSH', id)
  end
end
