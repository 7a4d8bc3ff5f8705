--- needs: put_into_inbox, permits
-- Give a task back to the front of its inbox or line, and tell whether it is there: one that
-- was cancelled is gone.
local function give_back(id)
  --- uses: task, lock
  redis.call('HDEL', lock, id)
  return_permits({id})
  local is_known = redis.call('HEXISTS', task, id) == 1
  if is_known then put_into_inbox('LPUSH', id) end
  return is_known
end
