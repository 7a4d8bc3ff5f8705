--- needs: unusual, history, caller
-- A task whose worker died may be the cause. It runs alone, so that another death can be
-- put down to it and not to its neighbours. Nobody waits long for that: a task that has run
-- for five seconds neither keeps others waiting nor is suspected any longer.
local function is_young(begun)
  local young_ms = 5000
  return begun and now - tonumber((string.gsub(begun, '^!', ''))) < young_ms
end

-- The position of the first suspect among some ids. Lua cannot unpack more than 8,000.
local function suspect_among(ids)
  --- uses: history
  if not is_there(history) then return nil end
  local slice = 1000
  for first = 1, #ids, slice do
    local last = math.min(first + slice - 1, #ids)
    for n, text in ipairs(redis.call('HMGET', history, unpack(ids, first, last))) do
      local _, deaths = read_history(text)
      if deaths > 0 then return first + n - 1 end
    end
  end
end

local function holds_young()
  --- uses: running
  for _, begun in ipairs(redis.call('HVALS', running)) do
    if is_young(begun) then return true end
  end
  return false
end

local function holds_suspect()
  --- uses: history, running
  if not is_there(history) then return false end
  local held = redis.call('HKEYS', running)
  local suspect = #held > 0 and suspect_among(held)
  return suspect and is_young(redis.call('HGET', running, held[suspect]))
end
