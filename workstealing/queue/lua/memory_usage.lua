-- Read how many bytes of memory each key takes, by the server's own sampling.
--
-- KEYS measured  any
--
-- Reply: bytes of each, 0 if there is none; -1 if the server does not say.

local reply = {}
for n, key in ipairs(KEYS) do
  local bytes = redis.pcall('MEMORY', 'USAGE', key)
  if type(bytes) == 'table' then bytes = -1 end
  reply[n] = bytes or 0
end
return reply
