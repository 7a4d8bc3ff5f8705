--- needs: put_into_inbox
-- Move delayed tasks whose time has come to the back of their inboxes.
local function promote(now, most)
  --- uses: task, later
  local due = redis.call('ZRANGE', later, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(due) do
    -- Removed first: a full server refuses what may grow until something was written.
    redis.call('ZREM', later, id)
    if redis.call('HEXISTS', task, id) == 1 then put_into_inbox('RPUSH', id) end
  end
  return #due
end
