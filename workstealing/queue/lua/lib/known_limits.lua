--- needs: unblock, wake_workers
-- Write down the numbers of limits in ARGV[first] and after, name and numbers each. What an
-- operator has set stays in force. Lines that were blocked by the former numbers get their turn
-- from the next worker that looks: there may be more of them than one script should move.
local function know_limits(first)
  --- uses: limits, refills
  for i = first, #ARGV, 2 do
    local name, numbers = ARGV[i], ARGV[i + 1]
    local known = redis.call('HGET', limits, name) or ''
    local in_force = string.match(known, '^([1-9]%d*/?%d*) ')
    local wanted = in_force and in_force .. ' ' .. numbers or numbers
    if known ~= wanted then
      redis.call('HSET', limits, name, wanted)
      if not in_force and #blocked_by(name, 1) > 0 then
        redis.call('ZADD', refills, 0, '\t' .. name)
        wake_workers(1)
      end
    end
  end
end
