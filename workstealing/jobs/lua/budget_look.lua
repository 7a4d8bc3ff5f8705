--- needs: coldness
-- Look at keys without using them.
--
-- KEYS[…]  keys     any    which
-- ARGV[1]  measure  int    1: bytes are wanted; 0: they are told as 0
--
-- Reply: coldness, bytes of each key; 0, -1 where there is none.

local flat = {}
for _, key in ipairs(KEYS) do
  local cold = coldness(key)
  local bytes = 0
  if cold and ARGV[1] == '1' then bytes = redis.call('MEMORY', 'USAGE', key) end
  flat[#flat + 1] = cold or 0
  flat[#flat + 1] = cold and bytes or -1
end
return flat
