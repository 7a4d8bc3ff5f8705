--- needs: unblock
-- A task that was taken from its line holds a permit of each limit on how many run, until it
-- ends or waits again. Permits come back here, once for each task, whoever gives them back.
local function return_permits(ids)
  --- uses: permits, permit_holders, blocked
  local holders, number_of, keys = {}, {}, {}
  for n, text in ipairs(redis.call('HMGET', permit_holders, unpack(ids))) do
    if text then
      holders[#holders + 1] = ids[n]
      for key in string.gmatch(text, '[^\t]+') do
        if not number_of[key] then keys[#keys + 1] = key end
        number_of[key] = (number_of[key] or 0) + 1
      end
    end
  end
  if #holders == 0 then return end
  redis.call('HDEL', permit_holders, unpack(holders))
  for first = 1, #keys, 1000 do
    local last, unused, fields = math.min(first + 999, #keys), {}, {}
    for n, running in ipairs(redis.call('HMGET', permits, unpack(keys, first, last))) do
      local key = keys[first + n - 1]
      local left = (tonumber(running) or 0) - number_of[key]
      if left > 0 then
        fields[#fields + 1] = key
        fields[#fields + 1] = left
      else
        unused[#unused + 1] = key
      end
    end
    if #unused > 0 then redis.call('HDEL', permits, unpack(unused)) end
    if #fields > 0 then redis.call('HSET', permits, unpack(fields)) end
  end
  if redis.call('EXISTS', blocked) == 0 then return end
  for _, key in ipairs(keys) do
    for _ = 1, number_of[key] do unblock(key) end
  end
end

-- Unblock lines whose limit has room again, as time has passed, or has other numbers.
local function renew_rates(now, most)
  --- uses: refills
  local due = redis.call('ZRANGE', refills, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(due) do
    if string.sub(key, 1, 1) ~= '\t' then
      redis.call('ZREM', refills, key)
      unblock(key)
    elseif not unblock_limit(string.sub(key, 2), most) then
      redis.call('ZREM', refills, key)
    end
  end
  return #due
end
