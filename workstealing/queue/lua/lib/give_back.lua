--- needs: put_into_inbox, permits
-- Give a task back to the front of its inbox or line. A task that was cancelled is gone.
local function give_back(id)
  --- uses: task, lock
  redis.call('HDEL', lock, id)
  return_permits({id})
  if redis.call('HEXISTS', task, id) == 1 then put_into_inbox('LPUSH', id) end
end
