--- needs: caller, unusual, take, obstacles, suspects, lines, permits, limit_room, repair_turns
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

-- Read a line: its limit keys, its weight, and whether it has a fair key; nil if it is none.
local function read_line(line)
  local fair_end = string.find(line, '\t', 3, true)
  if not fair_end then return nil end
  local weight_end = string.find(line, '\t', fair_end + 1, true) or #line + 1
  local limit_keys, first = {}, weight_end + 1
  while first <= #line do
    local last = string.find(line, '\t', first, true) or #line + 1
    limit_keys[#limit_keys + 1] = string.sub(line, first, last - 1)
    first = last + 1
  end
  local weight = tonumber(string.sub(line, fair_end + 1, weight_end - 1))
  -- A weight that its producer did not check must not put the line off for ever.
  weight = weight and math.min(1000, math.max(0.001, weight)) or 1
  return limit_keys, weight, fair_end > 3
end

-- Look at the lines whose turn it is, and read the room of their limits; nil if there is
-- something to repair.
local function look_at(found, priority, quantum)
  local looks, limit_keys, start = {}, {}, priority .. '\t'
  local last_turn = tonumber(found[2]) + quantum
  for n = 1, #found, 2 do
    local turn = finite_turn(found[n + 1])
    if turn and turn > last_turn then break end
    local keys, weight, is_fair = read_line(found[n])
    if not turn or not keys or string.sub(found[n], 1, 2) ~= start then return nil end
    for i = 1, #keys do limit_keys[#limit_keys + 1] = keys[i] end
    -- All fields at once: a table that grows later costs more.
    looks[#looks + 1] = {line = found[n], turn = turn, limit_keys = keys, weight = weight,
      is_fair = is_fair, full = false, has_more = false, taken = 0}
  end
  if #limit_keys > 0 then read_room(limit_keys, now) end
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
    local number, keys = quantum < left and quantum or left, look.limit_keys
    for i = 1, #keys do
      local room_left = room_of[keys[i]]
      if room_left <= 0 then look.full = look.full or keys[i] end
      if room_left < number then number = room_left end
    end
    if look.full then
      look.has_more = true
    else
      local found = first_of(lines, look.line, number + 1)
      if #found > number then look.has_more = true else number = #found end
      for i = 1, number do
        ids[#ids + 1] = string.sub(found[i], #look.line + 19)
        members[#members + 1] = found[i]
        look_of[#look_of + 1] = look
      end
      left = left - number
      for i = 1, #keys do room_of[keys[i]] = room_of[keys[i]] - number end
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
  local envelopes
  envelopes, last = read_first(ids, last)
  local number_of, holders = {}, {}
  for n = #ids, last + 1, -1 do
    for _, key in ipairs(look_of[n].limit_keys) do room_of[key] = room_of[key] + 1 end
    look_of[n].has_more = true
    ids[n], members[n] = nil, nil
  end
  if #ids == 0 then return end
  in_slices('ZREM', lines, members)
  local taken, next_taken = accept(ids, false, nil, envelopes), 1
  if suspect then is_alone = #tasks > 0 end
  if bytes_left <= 0 then room = 0 end
  for n = 1, #ids do
    local id, look, held = ids[n], look_of[n], nil
    local keys = look.limit_keys
    if taken[next_taken] == id then
      next_taken = next_taken + 1
      look.taken = look.taken + 1
      for i = 1, #keys do
        local key = keys[i]
        number_of[key] = (number_of[key] or 0) + 1
        if running_of[key] then held = held and held .. '\t' .. key or key end
      end
      if held then
        holders[#holders + 1] = id
        holders[#holders + 1] = held
      end
    else
      -- What was put aside, or is gone, leaves the room that was meant for it.
      for _, key in ipairs(keys) do room_of[key] = room_of[key] + 1 end
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
  if period then redis.call('ZADD', refills, refilled_at(look.full, now), look.full) end
end

local function next_turn(look) return turn_text(look.turn + look.taken / look.weight) end

-- Let another line of a fair key be its head. The result tells whether there is one.
local function change_head(look, is_ready, put_off)
  --- uses: ready, heads
  if is_any_ready == nil then is_any_ready = redis.call('EXISTS', ready) == 1 end
  if not is_any_ready then return false end
  local group = group_of(look.line)
  local member = first_of(ready, group, 1)[1]
  if not member then return false end
  local line = string.sub(member, #group + 19)
  redis.call('ZREM', ready, member)
  if is_ready then redis.call('ZADD', ready, 0, ready_member(group, look.line)) end
  redis.call('HSET', heads, group, line)
  put_off[#put_off + 1] = next_turn(look)
  put_off[#put_off + 1] = line
  return true
end

-- Put off the turns of lines that were served, and remove those that are blocked or empty.
local function advance(turns_key, looks)
  --- uses: placed, heads
  local put_off, over, emptied, headless = {}, {}, {}, {}
  for _, look in ipairs(looks) do
    if look.full then block(look) end
    local is_ready = look.has_more and not look.full
    if not look.has_more then emptied[#emptied + 1] = look.line end
    if look.is_fair and change_head(look, is_ready, put_off) then
      over[#over + 1] = look.line
    elseif is_ready then
      put_off[#put_off + 1] = next_turn(look)
      put_off[#put_off + 1] = look.line
    else
      over[#over + 1] = look.line
      if look.is_fair then headless[#headless + 1] = group_of(look.line) end
    end
  end
  in_slices('ZREM', turns_key, over)
  in_slices('HDEL', placed, emptied)
  in_slices('HDEL', heads, headless)
  in_slices('ZADD', turns_key, put_off)
end

-- Lines that have had their turn leave room of their limits to others that wait for it. Of a
-- rate that has none left, the others wait for the next: whoever took it may be gone.
local function pass_on(looks)
  --- uses: blocked, refills
  if is_any_blocked == nil then is_any_blocked = redis.call('EXISTS', blocked) == 1 end
  if not is_any_blocked then return end
  for _, look in ipairs(looks) do
    for _, key in ipairs(look.limit_keys) do
      if room_of[key] > 0 then
        unblock(key)
      elseif full_at[key] and #first_of(blocked, key, 1) > 0 then
        redis.call('ZADD', refills, refilled_at(key, now), key)
      end
    end
  end
end

-- Let the lines of a priority have their turns. A caller that cannot run every task passes
-- is_wanted, which tells whether a line begins with a task that it can run. If the line whose turn
-- it is does not, it takes none: no line is passed over.
local function take_turns(priority, is_wanted)
  --- uses: turns, control
  local turns_key, reached = turns[priority + 1], nil
  -- A line that is blocked makes way for another one.
  for _ = 1, 100 do
    if room == 0 or is_alone then break end
    local most = math.min(room, 100)
    local found = redis.call('ZRANGE', turns_key, 0, most - 1, 'WITHSCORES')
    if #found == 0 or is_wanted and not is_wanted(found[1]) then break end
    local active = #found < 2 * most and #found / 2 or redis.call('ZCARD', turns_key)
    -- A worker that takes many quick tasks takes two of each line, which halves the looks.
    local least, many = 1, 20
    if room >= many then least = 2 end
    local quantum = math.max(least, math.floor(room / active))
    -- Those whose turn is much later wait for another look, by when others have caught up.
    local looks = look_at(found, priority, quantum)
    if looks then
      local ids, members, look_of = choose(looks, quantum)
      take_chosen(ids, members, look_of)
      reached = math.max(reached or current_turn(priority), looks[#looks].turn)
      turn_of[priority] = reached
      advance(turns_key, looks)
      pass_on(looks)
    else
      repair_turns(priority, found)
    end
  end
  if reached then
    redis.call('HSET', control, 'turn:' .. priority, turn_text(reached))
  end
end
