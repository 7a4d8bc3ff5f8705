-- Some of the lines that are not blocked: those that have a turn, then those behind them.
local function unblocked_lines(most)
  --- uses: turns, ready
  local found = {}
  for _, key in ipairs(turns) do
    if #found < most then
      for _, line in ipairs(redis.call('ZRANGE', key, 0, most - #found - 1)) do
        found[#found + 1] = line
      end
    end
  end
  if #found < most then
    for _, member in ipairs(redis.call('ZRANGE', ready, 0, most - #found - 1)) do
      local key_end = string.find(member, '\0', 1, true) or #member
      found[#found + 1] = string.sub(member, key_end + 18)
    end
  end
  return found
end
