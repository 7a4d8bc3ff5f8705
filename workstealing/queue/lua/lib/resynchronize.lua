--- needs: token, caller, take, unusual, give_up, permits
-- Put tasks that the worker was given but never heard of back to the front of its deque,
-- under a new token: a call about them that is still on its way comes too late. One that
-- was begun and must not run twice is given up instead: its report was lost in a failover,
-- and nobody will send another.
local function resynchronize(number)
  --- uses: running, deque, lock, held_and_reports_at
  local is_held, unknown = {}, ARGV[held_and_reports_at]
  local last_held = held_and_reports_at + number - 1
  for i = held_and_reports_at + 1, last_held do is_held[ARGV[i]] = true end
  local taken = redis.call('HGETALL', running)
  for n = #taken - 1, 1, -2 do
    local id = taken[n]
    if not is_held[id] then
      redis.call('HDEL', running, id)
      if string.sub(taken[n + 1], 1, 1) ~= '!' then
        redis.call('LPUSH', deque, id)
        has_deque_changed = true
        redis.call('HSET', lock, id, mine .. new_token())
      elseif is_mine(redis.call('HGET', lock, id)) then
        becomes_odd()
        return_permits({id})
        give_up({id, unknown})
      end
    end
  end
end
