--- needs: coldness
-- Remove keys, except those that were used since they were inspected.
--
-- KEYS keys  any  which
-- ARGS seen  int  coldness of each when it was inspected
--
-- Reply: for each key 1 if it is gone, 0 if it was spared.

local flat = {}
for i, key in ipairs(KEYS) do
  local cold = coldness(key)
  if cold and cold < tonumber(ARGV[i]) then
    flat[i] = 0
  else
    redis.call('UNLINK', key)
    flat[i] = 1
  end
end
return flat
