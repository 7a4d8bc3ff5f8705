--- needs: caller, token, take, priorities, wake_workers
--- needs rarely: left_over
-- Fill the worker's deque with a fair share of the inboxes, up to the length that it asks
-- for. A worker that is alone needs no deque: the inbox serves it at less cost. Urgent
-- tasks stay in their inbox, where every worker looks first: in a deque they would stand
-- behind others.
local function assign(inbox, most)
  --- uses: lock, deque
  local ids = redis.call('LPOP', inbox, most) or {}
  local holders = redis.call('HMGET', lock, unpack(ids))
  local is_left_over, counts
  if is_odd then is_left_over, counts = left_over(ids) end
  if is_left_over then forget_left_over(ids, #ids, is_left_over, counts) end
  local assigned, locked = {}, {}
  for n, id in ipairs(ids) do
    local is_free = not holders[n] and not (is_left_over and is_left_over[n])
    if is_free and not is_seen[id] then
      is_seen[id] = true
      assigned[#assigned + 1] = id
      locked[#locked + 1] = id
      locked[#locked + 1] = mine .. new_token()
    end
  end
  if #assigned > 0 then
    redis.call('RPUSH', deque, unpack(assigned))
    has_deque_changed = true
    redis.call('HSET', lock, unpack(locked))
    record_priority(inbox, assigned)
  end
  return #ids
end

local function refill()
  --- uses: inboxes, members, deque, keep
  -- Members only: a process that runs brief tasks has a lease, but no share.
  local sharers = redis.call('HLEN', members)
  if sharers < 2 then return end
  local normal, low = redis.call('LLEN', inboxes[2]), redis.call('LLEN', inboxes[3])
  if normal + low == 0 then return end
  local share = math.ceil((normal + low) / sharers)
  local space = math.min(keep, share) - redis.call('LLEN', deque)
  local most = 1000
  if space > 0 and normal > 0 then
    space = space - assign(inboxes[2], math.min(space, normal, most))
  end
  if space > 0 and low > 0 then assign(inboxes[3], math.min(space, low, most)) end
  -- A worker that was woken for many tasks wakes another: the bell holds few wake-ups.
  if normal + low > share then wake_workers(1) end
end
