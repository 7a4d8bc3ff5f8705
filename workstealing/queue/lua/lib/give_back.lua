--- needs: inbox_of
-- Give a task back to the front of its inbox. A task that was cancelled is gone.
local function give_back(id)
  --- uses: task, lock
  local envelope = redis.call('HGET', task, id)
  redis.call('HDEL', lock, id)
  if envelope then redis.call('LPUSH', inbox_of(envelope), id) end
end
