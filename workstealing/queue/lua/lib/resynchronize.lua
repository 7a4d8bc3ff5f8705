--- needs: token, caller, take, unusual, give_up, permits, envelope_name
-- Put tasks that the worker was given but never heard of back to the front of its deque,
-- under a new token: a call about them that is still on its way comes too late. One that
-- was begun and must not run twice is given up instead: its report was lost in a failover,
-- and nobody will send another. The result is those that were given up: id, name, outcome, …
local function resynchronize(number)
  --- uses: running, deque, lock, task, held_and_reports_at
  local is_held, unknown, lost = {}, ARGV[held_and_reports_at], {}
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
        lost[#lost + 1] = id
        lost[#lost + 1] = envelope_name(redis.call('HGET', task, id) or '') or ''
        lost[#lost + 1] = unknown
      end
    end
  end
  return lost
end
