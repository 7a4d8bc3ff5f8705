--- needs: inboxes
-- Move delayed tasks whose time has come to the back of their inboxes.
local function promote(inboxes, tasks, later, now, most)
  local due = redis.call('ZRANGE', later, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(due) do
    local envelope = redis.call('HGET', tasks, id)
    if envelope then redis.call('RPUSH', inboxes[priority_of(envelope) + 1], id) end
    redis.call('ZREM', later, id)
  end
  return #due
end
