--- needs: unusual
-- Write down the priority of tasks that leave an inbox which is not the normal one.
local function record_priority(inbox, ids)
  --- uses: inboxes, priorities
  if inbox == inboxes[2] or #ids == 0 then return end
  local priority, fields = inbox == inboxes[1] and 0 or 2, {}
  for _, id in ipairs(ids) do
    fields[#fields + 1] = id
    fields[#fields + 1] = priority
  end
  has_priorities = true
  redis.call('HSET', priorities, unpack(fields))
end
