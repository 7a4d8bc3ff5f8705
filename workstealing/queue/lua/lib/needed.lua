--- needs: first_write, outcome_times
-- Tell by position which of some tasks that have ended a step still needs: their outcomes are
-- its arguments. A dead letter needs them too, for it may be replayed.
local function needed_among(ids)
  --- uses: followers, task
  local is_needed = {}
  for n, mark in ipairs(redis.call('HMGET', followers, unpack(ids))) do
    is_needed[n] = mark and string.sub(mark, 1, 1) == 'n'
      and redis.call('HEXISTS', task, string.sub(mark, 2)) == 1
  end
  return is_needed
end

-- Keep the needed among outcomes that are to be forgotten, behind all others: so a look at the
-- oldest does not find them again and again. Return those that may go.
local function keep_needed(ids, now)
  --- uses: outcome_times, followers
  local kept, gone, longer_ms = {}, {}, 60000
  local _, last = read_outcome_time(redis.call('LINDEX', outcome_times, -1))
  local until_then = math.max(now + longer_ms, last or 0)
  for n, is_needed in ipairs(needed_among(ids)) do
    if is_needed then
      kept[#kept + 1] = outcome_time(ids[n], until_then)
    else
      gone[#gone + 1] = ids[n]
    end
  end
  if #gone > 0 then redis.call('HDEL', followers, unpack(gone)) end
  if #kept > 0 then first_write('RPUSH', outcome_times, unpack(kept)) end
  return gone
end
