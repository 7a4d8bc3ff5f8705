-- Tell how many tasks wait for each of some abilities, and how many workers have it.
--
-- KEYS[1]  able     hash   name@version -> workers that can run it
-- KEYS[…]  parked   list   ids that need each ability
-- ARGV[…]  names    str    the abilities, in the same order
--
-- Reply: for each the tasks, cancelled ones included, and the workers.

local reply = {}
for n, ability in ipairs(ARGV) do
  reply[#reply + 1] = redis.call('LLEN', KEYS[n + 1])
  reply[#reply + 1] = tonumber(redis.call('HGET', KEYS[1], ability) or 0)
end
return reply
