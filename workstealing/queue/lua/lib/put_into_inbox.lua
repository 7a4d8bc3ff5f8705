-- Put a task that exists into the inbox of its priority: LPUSH it to the front, or RPUSH it
-- to the back. What is not normal is written down, for envelopes can be long.
local function put_into_inbox(push, id)
  --- uses: inboxes, priorities
  local priority = tonumber(redis.call('HGET', priorities, id) or 1)
  redis.call(push, inboxes[priority + 1], id)
end
