--- needs: unusual, lines
-- A task that is cancelled leaves its id in an inbox, and cancelled counts what is left over.
-- The id may come again, and be anywhere: an inbox then names it more often than it should.
-- Of a task that is in an inbox, the first id that is found there is as good as any other.

local function is_in_inbox(id)
  --- uses: task, lock, later, parked, paused_tasks, dead, priorities
  return redis.call('HEXISTS', task, id) == 1
    and redis.call('HEXISTS', lock, id) == 0
    and redis.call('HEXISTS', parked, id) == 0
    and redis.call('HEXISTS', paused_tasks, id) == 0
    and not redis.call('ZSCORE', later, id)
    and not redis.call('ZSCORE', dead, id)
    and not line_in(redis.call('HGET', priorities, id))
end

-- Tell by position which ids at the front of an inbox are left over, and how many of each
-- are; nil if there are none in any inbox. A caller that has their envelopes passes them.
local function left_over(ids, envelopes)
  --- uses: cancelled
  if not is_there(cancelled) then return nil end
  local is_left_over, counts, is_met = {}, {}, {}
  for n, text in ipairs(redis.call('HMGET', cancelled, unpack(ids))) do
    local id = ids[n]
    local may_be_there = not envelopes or envelopes[n]
    if text and (is_met[id] or not may_be_there or not is_in_inbox(id)) then
      is_left_over[n], counts[id] = true, tonumber(text)
    end
    is_met[id] = true
  end
  return is_left_over, counts
end

-- Forget those that are left over of the first ids, which are no longer in their inbox.
local function forget_left_over(ids, last, is_left_over, counts)
  --- uses: cancelled
  local gone, fewer = {}, {}
  for n = 1, last do
    local id = ids[n]
    if is_left_over[n] then
      counts[id] = counts[id] - 1
      if counts[id] > 0 then fewer[id] = true else gone[#gone + 1] = id end
    end
  end
  if #gone > 0 then redis.call('HDEL', cancelled, unpack(gone)) end
  for id in pairs(fewer) do
    if counts[id] > 0 then redis.call('HSET', cancelled, id, counts[id]) end
  end
end
