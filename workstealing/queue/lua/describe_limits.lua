--- needs: clock, lines, limit_in_the_way, unblocked_lines
-- Read limits, and how much of them is in use: by one key, or by some that hold tasks back.
--
-- KEY limits      hash  limit -> its numbers; then those of the code, if others
-- KEY permits     hash  limit key -> how many tasks hold a permit
-- KEY rates       zset  limit key -> when its bucket is full
-- KEY blocked     zset  limit key, turn, line; of lines that wait for room
-- KEY lines       zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]    zset  line -> its turn; urgent, normal, low
-- KEY ready       zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads       hash  fair key -> its line that has a turn
-- KEY placed      hash  line -> limit key that it waits for; empty: it is ready
-- KEY control     hash  token, sequence, turns
-- KEY priorities  hash  id -> 0 urgent or 2 low; or its line and sequence
-- ARG name  str  of a limit; empty: all limits
-- ARG key   str  of the limit, after =; empty: some that hold tasks back
-- ARG most  int  keys of each limit, and lines that are counted of each key
--
-- Reply: for each its name, its numbers, and a list: limit key, running, held back, …

local now, most_lines = now_ms(), 1000
local function length_of(line)
  return redis.call('ZLEXCOUNT', lines, '[' .. line .. '\0', '(' .. line .. '\1')
end

-- What waits for a limit, and no worker has looked at since it has no room.
local unseen_of, unseen_keys = {}, {}
for _, line in ipairs(unblocked_lines(most_lines)) do
  local limit_key = limit_in_the_way(line, now)
  if limit_key then
    if not unseen_of[limit_key] then unseen_keys[#unseen_keys + 1] = limit_key end
    unseen_of[limit_key] = (unseen_of[limit_key] or 0) + length_of(line)
  end
end

local function count_held_back(limit_key)
  if has_room(limit_key, now) then return 0 end
  local number = unseen_of[limit_key] or 0
  for _, member in ipairs(first_of(blocked, limit_key, most)) do
    number = number + length_of(string.sub(member, #limit_key + 23))
  end
  return number
end

local function describe(use, limit_key)
  use[#use + 1] = limit_key
  use[#use + 1] = tonumber(redis.call('HGET', permits, limit_key)) or 0
  use[#use + 1] = count_held_back(limit_key)
end

local function is_in_use(limit_key)
  return redis.call('HEXISTS', permits, limit_key) == 1 or #first_of(blocked, limit_key, 1) > 0
    or redis.call('ZSCORE', rates, limit_key)
end

local names = name == '' and redis.call('HKEYS', limits) or {name}
local reply = {}
for _, limit in ipairs(names) do
  local numbers, use = redis.call('HGET', limits, limit), {}
  if numbers and key ~= '' then
    -- Only use shows whether a limit has keys. One that was named is taken to have some.
    local is_bare = is_in_use(limit)
    if is_in_use(limit .. '=' .. key) or name ~= '' and not is_bare then
      describe(use, limit .. '=' .. key)
    end
  elseif numbers then
    if redis.call('HEXISTS', permits, limit) == 1 or #first_of(blocked, limit, 1) > 0
        or unseen_of[limit] then
      describe(use, limit)
    end
    local from = '[' .. limit .. '='
    for _ = 1, most do
      local member = redis.call('ZRANGE', blocked, from, '(' .. limit .. '>', 'BYLEX',
        'LIMIT', 0, 1)[1]
      if not member then break end
      local limit_key = string.sub(member, 1, string.find(member, '\0', 1, true) - 1)
      describe(use, limit_key)
      from = '(' .. limit_key .. '\1'
      unseen_of[limit_key] = nil
    end
    for _, limit_key in ipairs(unseen_keys) do
      local is_own = string.sub(limit_key, 1, #limit + 1) == limit .. '='
      if is_own and unseen_of[limit_key] and #use < 3 * most then describe(use, limit_key) end
    end
  end
  if numbers then
    reply[#reply + 1] = limit
    reply[#reply + 1] = numbers
    reply[#reply + 1] = use
  end
end
return reply
