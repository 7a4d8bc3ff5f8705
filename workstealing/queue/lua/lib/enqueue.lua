-- Put a new task into the inbox of its priority, or aside until it is due.
local function enqueue(id, envelope, priority, due)
  --- uses: task, later, priorities, inboxes
  redis.call('HSET', task, id, envelope)
  if due == 0 then
    redis.call('RPUSH', inboxes[priority + 1], id)
  else
    redis.call('ZADD', later, due, id)
    if priority ~= 1 then redis.call('HSET', priorities, id, priority) end
  end
end
