--- needs: unusual, caller, envelope_name, permits
-- A task whose name is paused must not stay where others would have to get past it: a script that
-- comes across it puts it aside, behind others of its name. resume.lua brings it back. While all of
-- the queue is paused, nothing moves.

local function is_queue_paused()
  --- uses: paused
  return is_there(paused) and redis.call('HEXISTS', paused, '*') == 1
end

local is_paused
local function is_any_name_paused()
  --- uses: paused
  if not is_there(paused) then return false end
  if not is_paused then
    is_paused = {}
    local pauses = redis.call('HGETALL', paused)
    for n = 1, #pauses, 2 do is_paused[pauses[n]] = pauses[n + 1] ~= '0' end
  end
  return true
end

-- The name of a task, if it is paused, where any is; else nothing.
local function paused_name(envelope)
  local name = envelope_name(envelope)
  return name and is_paused[name] and name
end

-- Put tasks aside that are in no other place any more.
local function put_aside(ids, names)
  --- uses: aside, paused_tasks, control, lock, permit_holders
  local before = redis.call('HINCRBY', control, 'sequence', #ids) - #ids
  local members, places = {}, {}
  for n, id in ipairs(ids) do
    local place = names[n] .. '\0' .. string.format('%016d', before + n)
    members[2 * n - 1], members[2 * n] = '0', place .. '\0' .. id
    places[2 * n - 1], places[2 * n] = id, place
  end
  redis.call('HDEL', lock, unpack(ids))
  -- One that was routed has kept its permits in the deque.
  if is_there(permit_holders) then return_permits(ids) end
  redis.call('ZADD', aside, unpack(members))
  redis.call('HSET', paused_tasks, unpack(places))
end
