-- Which inbox a task belongs into, by the priority of its envelope; the middle one for
-- envelopes that nobody can read.
local function priority_of(envelope)
  local ok, value = pcall(cjson.decode, envelope)
  local priority = ok and type(value) == 'table' and tonumber(value.priority) or 1
  return (priority == 0 or priority == 2) and priority or 1
end

-- Give a task back to the front of its inbox. A task that was cancelled is gone.
local function give_back(inboxes, tasks, locks, id)
  local envelope = redis.call('HGET', tasks, id)
  redis.call('HDEL', locks, id)
  if envelope then redis.call('LPUSH', inboxes[priority_of(envelope) + 1], id) end
end
