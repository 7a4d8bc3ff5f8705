-- Tell who some workers are, and how much each holds.
--
-- KEYS[1]  members  hash         worker -> incarnation|description
-- KEYS[…]  pairs    list, hash   deque and running of each worker, one after the other
-- ARGV[…]  names    str          their names, in the same order
--
-- Reply: for each its description, empty if it is gone; tasks in its deque, in its hands.

local reply = {}
for n, name in ipairs(ARGV) do
  local member = redis.call('HGET', KEYS[1], name)
  reply[#reply + 1] = member and string.match(member, '|(.*)$') or ''
  reply[#reply + 1] = redis.call('LLEN', KEYS[2 * n])
  reply[#reply + 1] = redis.call('HLEN', KEYS[2 * n + 1])
end
return reply
