--- needs: limit_in_the_way, unblocked_lines
-- Count the tasks whose line has a limit that has no room now. If there are many lines, only
-- some are looked at, so the number may be too small.
local function count_held_back(at, most)
  --- uses: lines, blocked, turns, refills
  local number = redis.call('ZCARD', lines)
  if number == 0 then return 0 end
  -- All are blocked, and of a limit that has room again, one line at least is not.
  if redis.call('EXISTS', turns[1], turns[2], turns[3]) == 0
      and redis.call('ZCOUNT', refills, '-inf', at) == 0 then
    return number
  end
  local names = unblocked_lines(most)
  for _, member in ipairs(redis.call('ZRANGE', blocked, 0, most - 1)) do
    local key_end = string.find(member, '\0', 1, true) or #member
    names[#names + 1] = string.sub(member, key_end + 22)
  end
  number = 0
  for _, line in ipairs(names) do
    if limit_in_the_way(line, at) then
      number = number + redis.call('ZLEXCOUNT', lines, '[' .. line .. '\0', '(' .. line .. '\1')
    end
  end
  return number
end
