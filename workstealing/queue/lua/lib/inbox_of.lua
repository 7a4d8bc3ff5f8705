-- The inbox of a task, by the priority in its envelope; the normal one if nobody can read
-- the envelope.
local function inbox_of(envelope)
  --- uses: inboxes
  local ok, value = pcall(cjson.decode, envelope)
  local priority = ok and type(value) == 'table' and tonumber(value.priority) or 1
  return inboxes[(priority == 0 or priority == 2) and priority + 1 or 2]
end
