-- Find the keys that have no time to live, and give them one.
--
-- KEYS keys  any  which
-- ARGS ttls  int  ms, one for each key; 0 only counts it
--
-- Reply: positions, from 0, of the keys that had none.

local without = {}
for i, key in ipairs(KEYS) do
  if redis.call('PTTL', key) == -1 then
    if ARGV[i] ~= '0' then redis.call('PEXPIRE', key, ARGV[i]) end
    without[#without + 1] = i - 1
  end
end
return without
