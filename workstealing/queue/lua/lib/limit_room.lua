-- Limits as the code or an operator says: so many at once (5), or so many in a time, in
-- milliseconds (100/60000). The first of two is in force, the second is that of the code.
local numbers_of = {}
local function limit_numbers(limit_key)
  --- uses: limits
  local name_end = string.find(limit_key, '=', 1, true)
  local name = name_end and string.sub(limit_key, 1, name_end - 1) or limit_key
  if not numbers_of[name] then
    local most, period = string.match(redis.call('HGET', limits, name) or '',
      '^([1-9]%d*)/?([1-9]?%d*)')
    numbers_of[name] = {most = tonumber(most), period = tonumber(period)}
  end
  return numbers_of[name].most, numbers_of[name].period
end

-- How many more may run, or begin now. Read once for each limit key, and kept up to date. Of
-- a rate, the bucket is full at the time in rates; a task that begins puts that off by its
-- share of the period.
local room_of, running_of, full_at = {}, {}, {}

-- When the bucket of a rate is full: in one period at most. What is written may be later, by
-- other numbers that the limit had then.
local function bucket_full_at(limit_key, period, now)
  --- uses: rates
  local written = tonumber(redis.call('ZSCORE', rates, limit_key) or 0)
  return math.min(written, now + period), written > now + period
end

local function read_room(limit_keys, now)
  --- uses: permits, rates
  local unread = {}
  for _, key in ipairs(limit_keys) do
    if not room_of[key] then
      local most, period = limit_numbers(key)
      room_of[key] = most or math.huge
      if period then
        local is_full_at, is_outdated = bucket_full_at(key, period, now)
        full_at[key] = math.max(now, is_full_at)
        if is_outdated then
          -- Removed first: a full server refuses what may grow until something was written.
          redis.call('ZREM', rates, key)
          redis.call('ZADD', rates, string.format('%.3f', is_full_at), key)
        end
        room_of[key] = math.floor((period - full_at[key] + now) * most / period + 1e-6)
      elseif most then
        unread[#unread + 1] = key
      end
    end
  end
  if #unread == 0 then return end
  for n, running in ipairs(redis.call('HMGET', permits, unpack(unread))) do
    local key = unread[n]
    running_of[key] = math.max(0, tonumber(running) or 0)
    room_of[key] = room_of[key] - running_of[key]
  end
end

-- Write down that so many were taken of each limit key; their room is less already.
local function write_room(number_of)
  --- uses: permits, rates
  local fields, scores = {}, {}
  for key, number in pairs(number_of) do
    if running_of[key] then
      running_of[key] = running_of[key] + number
      fields[#fields + 1] = key
      fields[#fields + 1] = running_of[key]
    elseif full_at[key] then
      local most, period = limit_numbers(key)
      full_at[key] = full_at[key] + number * period / most
      scores[#scores + 1] = string.format('%.3f', full_at[key])
      scores[#scores + 1] = key
    end
  end
  if #fields > 0 then redis.call('HSET', permits, unpack(fields)) end
  if #scores > 0 then redis.call('ZADD', rates, unpack(scores)) end
end

-- When a rate has room for one more.
local function refilled_at(limit_key, now)
  local most, period = limit_numbers(limit_key)
  local is_full_at = full_at[limit_key] or (bucket_full_at(limit_key, period, now))
  return math.ceil(is_full_at - period + period / most)
end
