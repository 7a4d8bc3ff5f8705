--- needs: caller, unusual, take, suspects, lines, permits, limit_room
-- Take tasks from lines, each in its turn. The line with the smallest turn is next; what it
-- gets, by its weight, puts its turn off. A line whose limits have no room is blocked. Many
-- lines are looked at together: what they need is read, then it is written, with as few
-- commands as if they were one.
local is_any_blocked -- nil if nobody has looked

local function in_slices(command, key, values)
  local slice = 1000
  for first = 1, #values, slice do
    redis.call(command, key, unpack(values, first, math.min(first + slice - 1, #values)))
  end
end

local function limits_of(line)
  local weight, keys = string.match(line, '^%d\t[^\t]*\t([^\t]*)\t?(.*)$')
  local limit_keys = {}
  for key in string.gmatch(keys, '[^\t]+') do limit_keys[#limit_keys + 1] = key end
  return limit_keys, tonumber(weight) or 1
end

-- Find the line of each turn, and read the room of their limits. What stands for a fair key
-- after its last line was emptied is removed.
local function find_lines(turns_key, groups, last_turn)
  --- uses: ready
  local looks, limit_keys = {}, {}
  for n = 1, #groups, 2 do
    local group, turn = groups[n], tonumber(groups[n + 1])
    if turn > last_turn then break end
    local look = {group = group, turn = turn, line = group}
    if string.sub(group, 3, 3) ~= '\t' then
      local found = first_of(ready, group, 2)
      look.is_shared, look.has_others = true, #found > 1
      look.member = found[1]
      look.line = look.member and string.sub(look.member, #group + 19)
    end
    if look.line then
      look.limit_keys, look.weight = limits_of(look.line)
      for _, key in ipairs(look.limit_keys) do limit_keys[#limit_keys + 1] = key end
      looks[#looks + 1] = look
    else
      redis.call('ZREM', turns_key, group)
    end
  end
  read_room(limit_keys, now)
  return looks
end

-- Choose tasks from the front of each line, as far as there is room. Nothing is written.
local function choose(looks, quantum)
  --- uses: lines
  local ids, members, look_of, left = {}, {}, {}, room
  for n, look in ipairs(looks) do
    if left == 0 then
      for later = #looks, n, -1 do looks[later] = nil end
      break
    end
    local number = math.min(quantum, left)
    for _, key in ipairs(look.limit_keys) do
      if room_of[key] <= 0 then look.full = look.full or key end
      number = math.min(number, room_of[key])
    end
    local found = look.full and {} or first_of(lines, look.line, number + 1)
    look.has_more, look.taken = look.full or #found > number, 0
    for i = 1, math.min(#found, number) do
      ids[#ids + 1] = string.sub(found[i], #look.line + 19)
      members[#members + 1] = found[i]
      look_of[#look_of + 1] = look
      left = left - 1
    end
    for _, key in ipairs(look.limit_keys) do
      room_of[key] = room_of[key] - math.min(#found, math.max(0, number))
    end
  end
  return ids, members, look_of
end

-- Take the chosen tasks, with permits. Those that must not run beside a suspect stay.
local function take_chosen(ids, members, look_of)
  --- uses: lines, permit_holders
  local suspect, last = suspect_among(ids), #ids
  if suspect then
    last = number_before(suspect)
    is_alone = last == 0
  end
  local position, number_of, holders = {}, {}, {}
  for n = #ids, 1, -1 do
    if n > last then
      for _, key in ipairs(look_of[n].limit_keys) do room_of[key] = room_of[key] + 1 end
      look_of[n].has_more = true
      ids[n], members[n] = nil, nil
    else
      position[ids[n]] = n
    end
  end
  if #ids == 0 then return end
  in_slices('ZREM', lines, members)
  local taken = accept(ids, false)
  if suspect then is_alone = #tasks > 0 end
  for _, id in ipairs(taken) do
    local look, held = look_of[position[id]], {}
    look.taken = look.taken + 1
    for _, key in ipairs(look.limit_keys) do
      number_of[key] = (number_of[key] or 0) + 1
      if running_of[key] then held[#held + 1] = key end
    end
    if #held > 0 then
      holders[#holders + 1] = id
      holders[#holders + 1] = table.concat(held, '\t')
    end
  end
  write_room(number_of)
  in_slices('HSET', permit_holders, holders)
end

local function block(look)
  --- uses: blocked, placed, refills
  is_any_blocked = true
  redis.call('HSET', placed, look.line, look.full)
  local member = look.full .. '\0' .. string.format('%020.6f', look.turn) .. '\0' .. look.line
  redis.call('ZADD', blocked, 0, member)
  local _, period = limit_numbers(look.full)
  if period then redis.call('ZADD', refills, refilled_at(look.full), look.full) end
end

-- Put off the turns of lines that were served, and remove those that are blocked or empty.
local function advance(turns_key, looks)
  --- uses: ready, placed
  local put_off, over, emptied, served, again = {}, {}, {}, {}, {}
  for _, look in ipairs(looks) do
    if look.full then block(look) end
    local is_ready = look.has_more and not look.full
    if not look.has_more then emptied[#emptied + 1] = look.line end
    if look.is_shared then served[#served + 1] = look.member end
    if look.is_shared and is_ready then
      again[#again + 1] = 0
      again[#again + 1] = look.group .. '\0' .. padded(sequence_from(1)) .. '\0' .. look.line
    end
    if is_ready or look.is_shared and look.has_others then
      put_off[#put_off + 1] = string.format('%.6f', look.turn + look.taken / look.weight)
      put_off[#put_off + 1] = look.group
    else
      over[#over + 1] = look.group
    end
  end
  in_slices('ZREM', turns_key, over)
  in_slices('HDEL', placed, emptied)
  in_slices('ZREM', ready, served)
  in_slices('ZADD', ready, again)
  in_slices('ZADD', turns_key, put_off)
end

-- Lines that have had their turn leave room of their limits to others that wait for it.
local function pass_on(looks)
  --- uses: blocked
  if is_any_blocked == nil then is_any_blocked = redis.call('EXISTS', blocked) == 1 end
  if not is_any_blocked then return end
  for _, look in ipairs(looks) do
    for _, key in ipairs(look.limit_keys) do
      if room_of[key] > 0 then unblock(key) end
    end
  end
end

-- Let the lines of a priority have their turns.
local function take_turns(priority)
  --- uses: turns, control
  local turns_key, reached = turns[priority + 1], nil
  -- A line that is blocked makes way for another one.
  for _ = 1, 100 do
    if room == 0 or is_alone then break end
    local most = math.min(room, 100)
    local groups = redis.call('ZRANGE', turns_key, 0, most - 1, 'WITHSCORES')
    if #groups == 0 then break end
    local active = #groups < 2 * most and #groups / 2 or redis.call('ZCARD', turns_key)
    local quantum = math.max(1, math.floor(room / active))
    -- Those whose turn is much later wait for another look, by when others have caught up.
    local looks = find_lines(turns_key, groups, tonumber(groups[2]) + quantum)
    local ids, members, look_of = choose(looks, quantum)
    take_chosen(ids, members, look_of)
    if #looks > 0 then
      reached = math.max(reached or current_turn(priority), looks[#looks].turn)
      turn_of[priority] = reached
    end
    advance(turns_key, looks)
    pass_on(looks)
  end
  if reached then
    redis.call('HSET', control, 'turn:' .. priority, string.format('%.6f', reached))
  end
end
