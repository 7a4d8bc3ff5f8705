--- needs: first_write
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
  --- uses: outbox, followers
  local kept, gone, longer_ms = {}, {}, 60000
  local last = tonumber(redis.call('ZRANGE', outbox, -1, -1, 'WITHSCORES')[2] or 0)
  local until_then = string.format('%d', math.max(now + longer_ms, last))
  for n, is_needed in ipairs(needed_among(ids)) do
    if is_needed then
      kept[#kept + 1] = until_then
      kept[#kept + 1] = ids[n]
    else
      gone[#gone + 1] = ids[n]
    end
  end
  if #gone > 0 then redis.call('HDEL', followers, unpack(gone)) end
  if #kept > 0 then first_write('ZADD', outbox, unpack(kept)) end
  return gone
end
