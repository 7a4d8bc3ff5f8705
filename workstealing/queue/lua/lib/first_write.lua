-- Do the first write of a script that must work on a full server. Such a server refuses to
-- a script what may grow, until the script has written something: PERSIST, which is never
-- refused, changes nothing in a key that has no expiry. It costs a server with room nothing.
local function first_write(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  redis.call('PERSIST', key)
  return redis.call(command, key, ...)
end
