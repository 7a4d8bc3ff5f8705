--- needs: coldness
-- Inspect keys without marking them as used.
--
-- KEYS keys  any  which
-- ARG measure  flag  bytes are wanted, not 0 in their place
--
-- Reply: coldness, bytes of each key; 0, -1 if it does not exist.

local flat = {}
for _, key in ipairs(KEYS) do
  local cold = coldness(key)
  local bytes = 0
  if cold and measure then bytes = redis.call('MEMORY', 'USAGE', key) end
  flat[#flat + 1] = cold or 0
  flat[#flat + 1] = cold and bytes or -1
end
return flat
