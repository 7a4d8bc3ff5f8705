-- A line is where tasks wait that have a fair key or limits. Its name is their priority, fair
-- key, weight and limit keys, with tabs between them, so that all tasks of a line share their
-- fate. A line is either blocked, waiting for room in a limit, or it is ready and gets its
-- turn. Lines of one fair key take the turns of that key among themselves: one of them, its
-- head, stands in turns, and the others are ready.
-- Nothing but lib/take_turns removes a line from turns: it is looked at first, and what it
-- leaves of a limit goes to the next one, so that no wake-up is lost.

-- Sequences of this width sort as text. Fronts count down from the middle, backs count up.
local middle = 5e15
local next_sequence, last_sequence = 1, 0
local function new_sequence()
  --- uses: control
  if next_sequence > last_sequence then
    -- More than are needed: a gap does no harm.
    local size = 1000
    last_sequence = redis.call('HINCRBY', control, 'sequence', size)
    next_sequence = last_sequence - size + 1
  end
  next_sequence = next_sequence + 1
  return next_sequence - 1
end
local function padded(sequence) return string.format('%016d', sequence) end

-- The range of all members of a set that begin with some text.
local function first_of(key, text, number)
  return redis.call('ZRANGE', key, '[' .. text .. '\0', '(' .. text .. '\1', 'BYLEX',
    'LIMIT', 0, number)
end

-- What lines of one fair key have in common; nil if a line has none.
local function group_of(line)
  local fair_end = string.find(line, '\t', 3, true)
  if fair_end > 3 then return string.sub(line, 1, fair_end - 1) end
end

local function ready_member(group, line)
  return group .. '\0' .. padded(new_sequence()) .. '\0' .. line
end

-- Others may have written anything into these keys: nil if it is no turn, false if no line.
local function finite_turn(text)
  local turn = tonumber(text)
  if turn and turn >= 0 and turn < 1e12 then return turn end
end
local function is_line(text) return string.find(text, '^[012]\t[^\t]*\t') ~= nil end

-- The turn that lines of a priority have come to: that of the one that was served last.
local turn_of = {}
local function current_turn(priority)
  --- uses: control
  turn_of[priority] = turn_of[priority]
    or finite_turn(redis.call('HGET', control, 'turn:' .. priority)) or 0
  return turn_of[priority]
end

-- A turn as it is written. Many lines have the same one, and to write it out takes long.
local text_of_turn = {}
local function turn_text(turn)
  local text = text_of_turn[turn]
  if not text then
    text = string.format('%.6f', turn)
    text_of_turn[turn] = text
  end
  return text
end

-- Let lines have their turn. New ones are put behind the first: those that come and go would
-- otherwise keep those that stay from theirs.
local is_any_ready -- besides heads; nil if nobody has looked
local function make_ready(names, turn)
  --- uses: turns, ready, heads
  local at, members, new_heads, head_of = {{}, {}, {}}, {}, {}, {}
  local fair_keys, group_at = {}, {}
  for n, line in ipairs(names) do
    group_at[n] = group_of(line) or false
    if group_at[n] then fair_keys[#fair_keys + 1] = group_at[n] end
  end
  if #fair_keys > 0 then
    for n, head in ipairs(redis.call('HMGET', heads, unpack(fair_keys))) do
      head_of[fair_keys[n]] = head
    end
  end
  for n, line in ipairs(names) do
    local group = group_at[n]
    if group and head_of[group] then
      members[#members + 1] = 0
      members[#members + 1] = ready_member(group, line)
    else
      if group then
        head_of[group] = line
        new_heads[#new_heads + 1] = group
        new_heads[#new_heads + 1] = line
      end
      local priority = tonumber(string.sub(line, 1, 1))
      local reached, scores = current_turn(priority), at[priority + 1]
      scores[#scores + 1] = turn_text(math.max(turn or reached + 1, reached))
      scores[#scores + 1] = line
    end
  end
  if #new_heads > 0 then redis.call('HSET', heads, unpack(new_heads)) end
  if #members > 0 then
    is_any_ready = true
    redis.call('ZADD', ready, unpack(members))
  end
  for n, scores in ipairs(at) do
    if #scores > 0 then redis.call('ZADD', turns[n], unpack(scores)) end
  end
end

-- Put tasks into their lines, to the front or to the back.
local function put_into_lines(ids, names, is_front)
  --- uses: lines, priorities, placed
  local members, places, is_known, distinct, fields, fresh = {}, {}, {}, {}, {}, {}
  for n, id in ipairs(ids) do
    local offset = new_sequence()
    local place = names[n] .. '\0' .. padded(is_front and middle - offset or middle + offset)
    places[2 * n - 1], places[2 * n] = id, place
    members[2 * n - 1], members[2 * n] = 0, place .. '\0' .. id
  end
  redis.call('HSET', priorities, unpack(places))
  redis.call('ZADD', lines, unpack(members))
  for _, line in ipairs(names) do
    if not is_known[line] then
      is_known[line] = true
      distinct[#distinct + 1] = line
    end
  end
  for n, limit_key in ipairs(redis.call('HMGET', placed, unpack(distinct))) do
    if not limit_key then
      fields[#fields + 1] = distinct[n]
      fields[#fields + 1] = ''
      fresh[#fresh + 1] = distinct[n]
    end
  end
  if #fresh == 0 then return end
  redis.call('HSET', placed, unpack(fields))
  make_ready(fresh)
end

-- The line of a task, by what priorities says of it; nil if it has none.
local function line_in(place)
  if place and #place > 1 then return string.sub(place, 1, -18) end
end
