-- Count the tasks that are parked for each ability, and the workers that have it.
--
-- KEY abilities  hash  name@version -> workers that can run it
-- KEYS parked_for  zset  id -> since when; all that wait for each ability
-- ARGS names  str  the abilities, in the same order
--
-- Reply: for each the tasks and the workers.

local reply = {}
for n, ability in ipairs(ARGV) do
  reply[#reply + 1] = redis.call('ZCARD', KEYS[parked_for_at + n - 1])
  reply[#reply + 1] = tonumber(redis.call('HGET', abilities, ability) or 0)
end
return reply
