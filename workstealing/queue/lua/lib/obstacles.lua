--- needs: unusual, caller, take, give_up, left_over, suspects, priorities, paused
-- What stands at the front of a list, or is in the way of others, and cannot be taken as it is.

-- Give up a task that no worker could name, nor report on.
local function reject(id)
  local reason = 'its id is not UTF-8: no worker can name it'
  give_up({id, cjson.encode({state = 'dead', reason = reason})})
  becomes_odd()
  has_priorities = true
end

-- Drop cancelled tasks from the front of an inbox, up to 500 at a time.
local function drop_cancelled(list)
  local ids, last = redis.call('LRANGE', list, 0, 499), 0
  if #ids == 0 then return end
  local is_left_over, counts = left_over(ids)
  if not is_left_over then return end
  while is_left_over[last + 1] do last = last + 1 end
  if last > 0 then
    redis.call('LPOP', list, last)
    forget_left_over(ids, last, is_left_over, counts)
  end
end

-- Put tasks at the front of a list aside if their name is paused: up to 500, and no more than may
-- be read.
local function set_paused_aside(list, is_own)
  --- uses: task, lock
  local ids = redis.call('LRANGE', list, 0, 499)
  if #ids == 0 or bytes_left <= 0 then return end
  local first = redis.call('HGET', task, ids[1])
  -- Most often it is not paused: then the others need not be read.
  if first and not paused_name(first) then return end
  local envelopes = read_first(ids, #ids)
  local holders = redis.call('HMGET', lock, unpack(ids))
  local is_left_over
  if not is_own then is_left_over = left_over(ids, envelopes) end
  local aside, names = {}, {}
  for n, id in ipairs(ids) do
    local name = envelopes[n] and paused_name(envelopes[n])
    local is_free = is_own and is_mine(holders[n]) or not is_own and not holders[n]
    if not name or not is_free or is_seen[id] or is_left_over and is_left_over[n] then break end
    is_seen[id] = true
    aside[n], names[n] = id, name
  end
  if #aside == 0 then return end
  redis.call('LPOP', list, #aside)
  if not is_own then record_priority(list, aside) end
  put_aside(aside, names)
  -- That takes longer than a look: after four of them the others have their turn.
  looks_left = looks_left - 4
end

-- How many tasks may be taken from the front of a list, given the position of the first suspect
-- in it: the tasks before it, or the suspect alone.
local function number_before(suspect)
  if suspect == 1 and (#tasks > 0 or holds_young()) then return 0 end
  return math.max(1, suspect - 1)
end
