-- Count a worker in, or out, for each of its abilities; return those that nobody had before.
local function count_abilities(member, by)
  --- uses: abilities
  local description, new = cjson.decode(string.match(member, '|(.*)$')), {}
  for _, ability in ipairs(description.abilities) do
    local workers = redis.call('HINCRBY', abilities, ability, by)
    if workers <= 0 then redis.call('HDEL', abilities, ability) end
    if workers == 1 and by > 0 then new[#new + 1] = ability end
  end
  return new
end
