-- Count a worker in, or out, for each of its abilities.
local function count_abilities(member, by)
  --- uses: abilities
  local description = cjson.decode(string.match(member, '|(.*)$'))
  for _, ability in ipairs(description.abilities) do
    if redis.call('HINCRBY', abilities, ability, by) <= 0 then
      redis.call('HDEL', abilities, ability)
    end
  end
end
