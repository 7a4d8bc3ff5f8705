--- needs: unique_windows
-- Return the task that has a unique key. A key whose task is gone, because a key of ours was
-- lost, is free.
local function key_holder(key, now)
  --- uses: uniques, unique_of, unique_windows
  local other = key ~= '' and redis.call('HGET', uniques, key)
  if not other then return nil end
  local window_ends = redis.call('ZSCORE', unique_windows, key)
  if window_ends then return tonumber(window_ends) > now and other or nil end
  return redis.call('HEXISTS', unique_of, other) == 1 and other or nil
end

-- Give a unique key, if there is one, to a task. first is when the first of those came that
-- it replaced.
local function take_key(id, priority, key, ends, window_ms, first, now)
  --- uses: uniques, unique_of, unique_windows
  if key == '' then return end
  redis.call('HSET', uniques, key, id)
  redis.call('HSET', unique_of, id, ends .. priority .. ':' .. string.format('%d', first) .. ':' .. key)
  if ends == 'w' then
    redis.call('ZADD', unique_windows, now + window_ms, key)
  else
    redis.call('ZREM', unique_windows, key)
  end
  expire_windows(now, 10)
end
