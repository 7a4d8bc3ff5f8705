-- Limits as the code or an operator says: so many at once (5), or so many in a time, in
-- milliseconds (100/60000). The first of two is in force, the second is that of the code.
local numbers_of = {}
local function limit_numbers(limit_key)
  --- uses: limits
  local name = string.match(limit_key, '^[^=]*')
  if not numbers_of[name] then
    local most, period = string.match(redis.call('HGET', limits, name) or '', '^(%d+)/?(%d*)')
    numbers_of[name] = {most = tonumber(most), period = tonumber(period)}
  end
  return numbers_of[name].most, numbers_of[name].period
end

-- How many more may run, or begin now. Of a rate, the bucket is full at the time in rates,
-- and a task that begins puts that off by its share of the period.
local function limit_room(limit_key, now)
  --- uses: permits, rates
  local most, period = limit_numbers(limit_key)
  if not most then return math.huge end
  if not period then return most - tonumber(redis.call('HGET', permits, limit_key) or 0) end
  local missing = tonumber(redis.call('ZSCORE', rates, limit_key) or 0) - now
  return math.floor((period - math.max(0, missing)) * most / period + 1e-6)
end

-- Take room of a limit. The result tells whether it is a permit, which is to come back.
local function take_room(limit_key, number, now)
  --- uses: permits, rates
  local most, period = limit_numbers(limit_key)
  if not most then return false end
  if not period then
    redis.call('HINCRBY', permits, limit_key, number)
    return true
  end
  local full_at = math.max(now, tonumber(redis.call('ZSCORE', rates, limit_key) or 0))
  redis.call('ZADD', rates, string.format('%.3f', full_at + number * period / most), limit_key)
  return false
end

-- When a rate has room for one more.
local function refilled_at(limit_key)
  --- uses: rates
  local most, period = limit_numbers(limit_key)
  local full_at = tonumber(redis.call('ZSCORE', rates, limit_key) or 0)
  return math.ceil(full_at - period + period / most)
end
