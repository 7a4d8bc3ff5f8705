--- needs: clock
-- Read fields, leaving out those whose time has come.
--
-- KEY map      hash  field -> value
-- KEY expires  zset  field -> when it expires, ms; of those the server does not
-- ARGS fields  str  which; none means all
--
-- Reply: field, value, field, value, …

local now = now_ms()
local flat = {}
if #ARGV == 0 then
  local gone = {}
  for _, field in ipairs(redis.call('ZRANGE', expires, '-inf', now, 'BYSCORE')) do
    gone[field] = true
  end
  local all = redis.call('HGETALL', map)
  for i = 1, #all, 2 do
    if not gone[all[i]] then
      flat[#flat + 1] = all[i]
      flat[#flat + 1] = all[i + 1]
    end
  end
else
  for _, field in ipairs(ARGV) do
    local due = redis.call('ZSCORE', expires, field)
    local value = redis.call('HGET', map, field)
    if value and (not due or tonumber(due) > now) then
      flat[#flat + 1] = field
      flat[#flat + 1] = value
    end
  end
end
return flat
