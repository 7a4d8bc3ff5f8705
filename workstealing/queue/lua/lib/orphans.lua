--- needs: caller, history, give_back, give_up, permits, envelope_name
-- Return the tasks of a worker that is dead, leaves, or came back as a new incarnation.
-- A task that was begun and must not run twice (a ! stands before its time) is given up
-- instead, for nobody knows what it did.

-- The events of its tasks. If it died, its lease ended some time before, or its name was taken.
local function parting_events(has_died, lease_end)
  --- uses: worker
  if not has_died then return {event('h', now, worker)} end
  if not lease_end then return {event('d', now, worker)} end
  return {event('l', lease_end, worker), event('b', now)}
end

-- Return the tasks in its deque from the back to the front: each is put in front, so the
-- order is kept. The result is their number.
local function return_waiting(deque, most, has_died, lease_end)
  --- uses: lock
  local returned, known = 0, {}
  for _, id in ipairs(redis.call('RPOP', deque, most) or {}) do
    if is_mine(redis.call('HGET', lock, id)) then
      if give_back(id) then known[#known + 1] = id end
      returned = returned + 1
    end
  end
  note_events(known, parting_events(has_died, lease_end))
  return returned
end

-- Note that it parted with a task that it had taken; return how many deaths that has seen.
local function note_parting(id, taken_at, has_died, parting)
  --- uses: history, worker, task
  local attempts, deaths, steals, failures, events = read_history(redis.call('HGET', history, id))
  if has_died then deaths = deaths + 1 end
  events = add_events(add_taken(events, taken_at, worker), parting)
  if redis.call('HEXISTS', task, id) == 1 then
    redis.call('HSET', history, id, write_history(attempts, deaths, steals, failures, events))
  end
  return deaths
end

-- Return the tasks that it has taken. If it died, a task that has seen *most_deaths* is
-- given up with the outcome *exhausted*; nil if it did not die. The results are their
-- number; the ids of those that went back; and of those that were given up: id, name,
-- outcome, …
local function return_running(most, unknown, most_deaths, exhausted, lease_end)
  --- uses: lock, running, task
  local held, returned, back, lost = redis.call('HGETALL', running), 0, {}, {}
  local parting = parting_events(most_deaths, lease_end)
  local function give_up_as(id, why)
    give_up({id, why})
    lost[#lost + 1] = id
    lost[#lost + 1] = envelope_name(redis.call('HGET', task, id) or '') or ''
    lost[#lost + 1] = why
  end
  for n = #held - 1, 1, -2 do
    if returned >= most then break end
    local id = held[n]
    redis.call('HDEL', running, id)
    if is_mine(redis.call('HGET', lock, id)) then
      local deaths = note_parting(id, held[n + 1], most_deaths, parting)
      return_permits({id})
      if string.sub(held[n + 1], 1, 1) == '!' then
        give_up_as(id, unknown)
      elseif most_deaths and deaths >= most_deaths then
        give_up_as(id, exhausted)
      else
        give_back(id)
        back[#back + 1] = id
      end
      returned = returned + 1
    end
  end
  return returned, back, lost
end
