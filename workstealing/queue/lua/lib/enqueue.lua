--- needs: lines
-- Put a new task, whose envelope is written, into its line or else into the inbox of its
-- priority; or aside until it is due, with a note of where it belongs then.
local function enqueue(id, priority, line, due)
  --- uses: later, priorities, inboxes
  local has_line = line ~= ''
  if due > 0 then
    redis.call('ZADD', later, due, id)
    local place = has_line and line .. '\0' .. padded(0) or priority
    if place ~= 1 then redis.call('HSET', priorities, id, place) end
  elseif has_line then
    put_into_lines({id}, {line}, false)
  else
    redis.call('RPUSH', inboxes[priority + 1], id)
  end
end
