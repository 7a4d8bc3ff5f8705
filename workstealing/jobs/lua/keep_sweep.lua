--- needs: clock
-- Remove the named values, except those whose deadline was moved meanwhile.
--
-- KEY deadlines  zset  name -> when its value dies, ms
-- KEYS values    str   in the order of the names
-- ARGS names  str  which, at most 1000
--
-- Reply: number of names removed.

local now = now_ms()
local names, values = {}, {}
for i, due in ipairs(redis.call('ZMSCORE', deadlines, unpack(ARGV))) do
  if due and tonumber(due) <= now then
    names[#names + 1] = ARGV[i]
    values[#values + 1] = KEYS[values_at + i - 1]
  end
end
if #names == 0 then return 0 end
redis.call('UNLINK', unpack(values))
return redis.call('ZREM', deadlines, unpack(names))
