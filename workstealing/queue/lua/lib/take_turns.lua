--- needs: caller, unusual, take, suspects, lines, permits, limit_room
-- Take tasks from lines, each in its turn. The line with the smallest turn is next; what it
-- gets, by its weight, puts its turn off. A line whose limits have no room is blocked.
local is_any_blocked -- or nobody has looked

local function limits_of(line)
  local weight, keys = string.match(line, '^%d\t[^\t]*\t([^\t]*)\t?(.*)$')
  local limit_keys = {}
  for key in string.gmatch(keys, '[^\t]+') do limit_keys[#limit_keys + 1] = key end
  return limit_keys, tonumber(weight) or 1
end

local function block(line, limit_key, turn)
  --- uses: blocked, placed, refills
  is_any_blocked = true
  redis.call('HSET', placed, line, limit_key)
  local member = limit_key .. '\0' .. string.format('%020.6f', turn) .. '\0' .. line
  redis.call('ZADD', blocked, 0, member)
  local _, period = limit_numbers(limit_key)
  if period then redis.call('ZADD', refills, refilled_at(limit_key), limit_key) end
end

-- A line that has had its turn leaves room of its limits to others that wait for it.
local function pass_on(limit_keys)
  --- uses: blocked
  if is_any_blocked == nil then is_any_blocked = redis.call('EXISTS', blocked) == 1 end
  if not is_any_blocked then return end
  for _, key in ipairs(limit_keys) do
    if limit_room(key, now) > 0 then unblock(key) end
  end
end

-- Take up to some tasks from the front of a line. The result is how many were taken, and
-- whether any are left in it.
local function take_from_line(line, number, limit_keys)
  --- uses: lines, permit_holders
  local members = first_of(lines, line, number + 1)
  local has_more, ids = #members > number, {}
  members[number + 1] = nil
  for n, member in ipairs(members) do ids[n] = string.sub(member, #line + 19) end
  local suspect = suspect_among(ids)
  if suspect then
    local last = number_before(suspect)
    for n = #ids, last + 1, -1 do ids[n], members[n], has_more = nil, nil, true end
    is_alone = last == 0
  end
  if #ids == 0 then return 0, has_more end
  redis.call('ZREM', lines, unpack(members))
  local taken = accept(ids, false)
  if suspect then is_alone = #tasks > 0 end
  if #taken == 0 then return 0, has_more end
  local held, fields = {}, {}
  for _, key in ipairs(limit_keys) do
    if take_room(key, #taken, now) then held[#held + 1] = key end
  end
  if #held > 0 then
    local text = table.concat(held, '\t')
    for n, id in ipairs(taken) do fields[2 * n - 1], fields[2 * n] = id, text end
    redis.call('HSET', permit_holders, unpack(fields))
  end
  return #taken, has_more
end

-- Serve a line, or the next one of a fair key. The result tells whether it was blocked, and
-- another one of that key may be ready.
local function serve(turns_key, group, turn, quantum)
  --- uses: ready, placed
  local line, is_shared = group, string.sub(group, 3, 3) ~= '\t'
  if is_shared then
    local next_one = first_of(ready, group, 1)[1]
    if not next_one then
      redis.call('ZREM', turns_key, group)
      return
    end
    redis.call('ZREM', ready, next_one)
    line = string.sub(next_one, #group + 19)
  end
  local limit_keys, weight = limits_of(line)
  local number, full = quantum, nil
  for _, key in ipairs(limit_keys) do
    local left = limit_room(key, now)
    if left <= 0 then full = full or key end
    number = math.min(number, left)
  end
  local taken, has_more = 0, true
  if full then
    block(line, full, turn)
  else
    taken, has_more = take_from_line(line, number, limit_keys)
    if not has_more then redis.call('HDEL', placed, line) end
  end
  if is_shared and has_more and not full then
    redis.call('ZADD', ready, 0, group .. '\0' .. padded(sequence_from(1)) .. '\0' .. line)
  end
  if has_more and not full or is_shared and first_of(ready, group, 1)[1] then
    turn = string.format('%.6f', turn + taken / weight)
    redis.call('ZADD', turns_key, turn, group)
  else
    redis.call('ZREM', turns_key, group)
  end
  pass_on(limit_keys)
  return is_shared and full
end

-- Let the lines of a priority have their turns, many at a look.
local function take_turns(priority)
  --- uses: turns, control
  local turns_key, reached = turns[priority + 1], current_turn(priority)
  while room > 0 and not is_alone and looks_left > 0 do
    local room_before, most = room, math.min(room, 100)
    local groups = redis.call('ZRANGE', turns_key, 0, most - 1, 'WITHSCORES')
    if #groups == 0 then break end
    local active = #groups < 2 * most and #groups / 2 or redis.call('ZCARD', turns_key)
    local quantum = math.max(1, math.floor(room / active))
    -- Those whose turn is much later wait for another look, by when others have caught up.
    local last_turn = tonumber(groups[2]) + quantum
    for n = 1, #groups, 2 do
      local turn = tonumber(groups[n + 1])
      if room == 0 or is_alone or turn > last_turn then break end
      reached = math.max(reached, turn)
      turn_of[priority] = reached
      for _ = 1, 100 do
        if not serve(turns_key, groups[n], turn, math.min(quantum, room)) then break end
      end
    end
    if room == room_before then looks_left = looks_left - 1 end
  end
  if reached > 0 then
    redis.call('HSET', control, 'turn:' .. priority, string.format('%.6f', reached))
  end
end
