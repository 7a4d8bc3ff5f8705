--- needs: caller, history, give_back, give_up, permits
-- Return the tasks of a worker that is dead, leaves, or came back as a new incarnation.
-- A task that was begun and must not run twice (a ! stands before its time) is given up
-- instead, for nobody knows what it did.

-- Return the tasks in its deque from the back to the front: each is put in front, so the
-- order is kept. The result is their number.
local function return_waiting(deque, most)
  --- uses: lock
  local returned = 0
  for _, id in ipairs(redis.call('RPOP', deque, most) or {}) do
    if is_mine(redis.call('HGET', lock, id)) then
      give_back(id)
      returned = returned + 1
    end
  end
  return returned
end

-- Count a death for a task; return how many it has seen.
local function count_death(id)
  --- uses: history
  local attempts, deaths, steals, failures = read_history(redis.call('HGET', history, id))
  redis.call('HSET', history, id, write_history(attempts, deaths + 1, steals, failures))
  return deaths + 1
end

-- Return the name that an envelope has where this library writes it, or nothing.
local function name_in(envelope)
  envelope = string.gsub(string.sub(envelope or '', 1, 1000), '^{"sig":"[^"]*",', '{', 1)
  return string.match(envelope, '^{"v":1,"name":"([^"\\]*)"') or ''
end

-- Return the tasks that it has taken. If it died, a task that has seen *most_deaths* is
-- given up with the outcome *exhausted*; nil if it did not die. The results are their
-- number, and those that were given up: id, name, id, name, …
local function return_running(most, unknown, most_deaths, exhausted)
  --- uses: lock, running, task
  local held, returned, lost = redis.call('HGETALL', running), 0, {}
  local function give_up_as(id, why)
    give_up({id, why})
    lost[#lost + 1] = id
    lost[#lost + 1] = name_in(redis.call('HGET', task, id))
  end
  for n = #held - 1, 1, -2 do
    if returned >= most then break end
    local id = held[n]
    redis.call('HDEL', running, id)
    if is_mine(redis.call('HGET', lock, id)) then
      local deaths = most_deaths and count_death(id)
      return_permits({id})
      if string.sub(held[n + 1], 1, 1) == '!' then
        give_up_as(id, unknown)
      elseif deaths and deaths >= most_deaths then
        give_up_as(id, exhausted)
      else
        give_back(id)
      end
      returned = returned + 1
    end
  end
  return returned, lost
end
