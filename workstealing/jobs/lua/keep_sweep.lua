--- needs: clock
-- Remove the named values, except those whose deadline was moved meanwhile.
--
-- KEYS[1]  deadlines  zset   name -> when its value dies, ms
-- KEYS[…]  values     str    in the order of the names
-- ARGV[…]  names      str    which
--
-- Reply: number of names removed.

local now = now_ms()
local removed = 0
for i, name in ipairs(ARGV) do
  local due = redis.call('ZSCORE', KEYS[1], name)
  if due and tonumber(due) <= now then
    redis.call('UNLINK', KEYS[i + 1])
    redis.call('ZREM', KEYS[1], name)
    removed = removed + 1
  end
end
return removed
