-- Name the idle among some workers: those with no task in the deque and none running.
--
-- KEYS pairs  list, hash  deque and running of each worker, one after the other
-- ARGS names  str  their names, in the same order
--
-- Reply: the names of the idle.

local starving = {}
for n, name in ipairs(ARGV) do
  if redis.call('LLEN', KEYS[2 * n - 1]) == 0 and redis.call('HLEN', KEYS[2 * n]) == 0 then
    starving[#starving + 1] = name
  end
end
return starving
