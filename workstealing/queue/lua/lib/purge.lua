--- needs: outcome_times, purged
-- Forget an outcome before its time.
local function purge_outcome(id)
  --- uses: done, purged, biographies
  redis.call('HDEL', done, id)
  redis.call('HDEL', biographies, id)
  redis.call('HINCRBY', purged, id, 1)
end

-- Remove what is left over at the front, where that costs nothing.
local function trim_outcome_times()
  --- uses: outcome_times, purged
  local step, most = 100, 1000
  for _ = 1, most, step do
    local ids, number = {}, {}
    for _, text in ipairs(redis.call('LRANGE', outcome_times, 0, step - 1)) do
      ids[#ids + 1] = read_outcome_time(text)
    end
    local first = {}
    for n, text in ipairs(#ids > 0 and redis.call('HMGET', purged, unpack(ids)) or {}) do
      local id = ids[n]
      number[id] = (number[id] or tonumber(text or 0)) - 1
      if number[id] < 0 then break end
      first[n] = id
    end
    if #first == 0 then return end
    redis.call('LPOP', outcome_times, #first)
    without_purged(first)
  end
end
