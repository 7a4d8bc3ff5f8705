--- needs: clock
-- Read fields, leaving out those whose time has come.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms
-- ARGV[…]  fields   str    which; none means all
--
-- Reply: field, value, field, value, …

local now = now_ms()
local flat = {}
local function alive(field)
  local due = redis.call('ZSCORE', KEYS[2], field)
  return not due or tonumber(due) > now
end
if #ARGV == 0 then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if alive(all[i]) then
      flat[#flat + 1] = all[i]
      flat[#flat + 1] = all[i + 1]
    end
  end
else
  for _, field in ipairs(ARGV) do
    local value = redis.call('HGET', KEYS[1], field)
    if value and alive(field) then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
end
return flat
