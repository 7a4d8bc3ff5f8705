--- needs: token, caller, take
-- Put tasks that the worker was given but never heard of back to the front of its deque,
-- under a new token: a call about them that is still on its way comes too late.
local function resynchronize(number)
  --- uses: running, deque, lock, held_ids_at
  local is_held = {}
  for i = held_ids_at, held_ids_at + number - 1 do is_held[ARGV[i]] = true end
  local taken = redis.call('HGETALL', running)
  for n = #taken - 1, 1, -2 do
    local id = taken[n]
    -- A task that was begun and must not run twice stays until its worker leaves or dies.
    if not is_held[id] and string.sub(taken[n + 1], 1, 1) ~= '!' then
      redis.call('HDEL', running, id)
      redis.call('LPUSH', deque, id)
      has_deque_changed = true
      redis.call('HSET', lock, id, mine .. new_token())
    end
  end
end
