-- Describe workers, and count the tasks that each holds.
--
-- KEY members  hash        worker -> incarnation|description
-- KEYS pairs   list, hash  deque and running of each worker, one after the other
-- ARGS names  str  their names, in the same order
--
-- Reply: for each its description, empty if it is gone; tasks in its deque, tasks that
-- it has taken.

local described = redis.call('HMGET', members, unpack(ARGV))
local reply = {}
for n = 1, #ARGV do
  local member = described[n]
  reply[#reply + 1] = member and string.match(member, '|(.*)$') or ''
  reply[#reply + 1] = redis.call('LLEN', KEYS[pairs_at + 2 * n - 2])
  reply[#reply + 1] = redis.call('HLEN', KEYS[pairs_at + 2 * n - 1])
end
return reply
