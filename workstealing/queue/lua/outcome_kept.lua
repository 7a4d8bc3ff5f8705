--- needs: outcome_times
-- Find when an outcome expires, among the latest.
--
-- KEY outcome_times  list  id and when its outcome expires, in the order of their ends
-- ARG id  str
--
-- Reply: ms, or -1 if it is not found.

local step, most = 2500, 10000
for first = step, most, step do
  local times = redis.call('LRANGE', outcome_times, -first, step - first - 1)
  for n = #times, 1, -1 do
    -- To compare is quicker than to read each.
    if string.find(times[n], id, 1, true) == 1 then
      local its_id, expires_at = read_outcome_time(times[n])
      if its_id == id then return expires_at end
    end
  end
  if #times < step then break end
end
return -1
