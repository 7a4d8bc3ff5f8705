-- Write down the numbers of limits in ARGV[first] and after, name and numbers each. What an
-- operator has set stays in force.
local function know_limits(first)
  --- uses: limits
  for i = first, #ARGV, 2 do
    local name, numbers = ARGV[i], ARGV[i + 1]
    local known = redis.call('HGET', limits, name) or ''
    local in_force = string.match(known, '^(%S+) ')
    local wanted = in_force and in_force .. ' ' .. numbers or numbers
    if known ~= wanted then redis.call('HSET', limits, name, wanted) end
  end
end
