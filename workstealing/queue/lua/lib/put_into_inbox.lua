--- needs: lines
-- Put a task that exists into its line, or else into the inbox of its priority: LPUSH it to
-- the front, or RPUSH it to the back. What is not normal is written down, for envelopes can
-- be long.
local function put_into_inbox(push, id)
  --- uses: inboxes, priorities
  local place = redis.call('HGET', priorities, id)
  local line = line_in(place)
  if line then return put_into_lines({id}, {line}, push == 'LPUSH') end
  redis.call(push, inboxes[tonumber(place or 1) + 1], id)
end
