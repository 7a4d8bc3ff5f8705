--- needs: inbox_of
-- Move delayed tasks whose time has come to the back of their inboxes.
local function promote(now, most)
  --- uses: task, later
  local due = redis.call('ZRANGE', later, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(due) do
    local envelope = redis.call('HGET', task, id)
    -- Removed first: a full server refuses what may grow until something was written.
    redis.call('ZREM', later, id)
    if envelope then redis.call('RPUSH', inbox_of(envelope), id) end
  end
  return #due
end
