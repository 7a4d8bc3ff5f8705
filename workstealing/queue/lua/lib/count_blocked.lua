-- Count the tasks that limits hold back: those of blocked lines. A line whose rate has room by
-- now is left out: it only waits for a worker to look. If there are many lines, only some are
-- counted, so the number may be too small.
local function count_blocked(at, most)
  --- uses: lines, blocked, turns, refills
  local is_any_due = redis.call('ZCOUNT', refills, '-inf', at) > 0
  if not is_any_due and redis.call('EXISTS', turns[1], turns[2], turns[3]) == 0 then
    return redis.call('ZCARD', lines)
  end
  local number = 0
  for _, member in ipairs(redis.call('ZRANGE', blocked, 0, most - 1)) do
    local key_end = string.find(member, '\0', 1, true) or #member + 1
    local refill = is_any_due
      and redis.call('ZSCORE', refills, string.sub(member, 1, key_end - 1))
    if not refill or tonumber(refill) > at then
      local line = string.sub(member, key_end + 22)
      number = number + redis.call('ZLEXCOUNT', lines, '[' .. line .. '\0', '(' .. line .. '\1')
    end
  end
  return number
end
