--- needs: clock
-- Read fields, leaving out those whose time has come.
--
-- KEYS[1]  map      hash   field -> value
-- KEYS[2]  expires  zset   field -> when it expires, ms; of those the server does not
-- ARGV[…]  fields   str    which; none means all
--
-- Reply: field, value, field, value, …

local now = now_ms()
local flat = {}
if #ARGV == 0 then
  local gone = {}
  for _, field in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE')) do
    gone[field] = true
  end
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if not gone[all[i]] then
      flat[#flat + 1] = all[i]
      flat[#flat + 1] = all[i + 1]
    end
  end
else
  for _, field in ipairs(ARGV) do
    local due = redis.call('ZSCORE', KEYS[2], field)
    local value = redis.call('HGET', KEYS[1], field)
    if value and (not due or tonumber(due) > now) then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
end
return flat
