-- Keys in the index, and their bytes: the mean of those measured, times all.
local function usage(index, sizes, state)
  local keys = redis.call('ZCARD', index)
  local measured = redis.call('HLEN', sizes)
  local bytes = tonumber(redis.call('HGET', state, 'bytes') or 0)
  if measured > 0 then bytes = math.floor(bytes * keys / measured) end
  return keys, bytes
end
