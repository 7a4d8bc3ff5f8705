-- Name some of the tasks that workers have taken.
--
-- KEYS running  hash  id -> begun at; of each worker
-- ARG most  int  tasks named at most
--
-- Reply: number of the worker, from 0, id, begun at, …

local reply = {}
for n, key in ipairs(KEYS) do
  local page = redis.call('HSCAN', key, '0', 'COUNT', most)[2]
  for i = 1, #page, 2 do
    if #reply >= 3 * most then return reply end
    reply[#reply + 1] = n - 1
    reply[#reply + 1] = page[i]
    reply[#reply + 1] = page[i + 1]
  end
end
return reply
