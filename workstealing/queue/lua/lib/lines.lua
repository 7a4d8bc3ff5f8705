-- A line is where tasks wait that have a fair key or limits. Its name is their priority, fair
-- key, weight and limit keys, with tabs between them, so that all tasks of a line share their
-- fate. A line is either blocked, waiting for room in a limit, or it is ready and gets its
-- turn. Lines of one fair key take the turns of that key among themselves: turns holds the
-- key instead of them, and ready says which of them is next.
-- Nothing but lib/take_turns removes a line from turns: it is looked at first, and what it
-- leaves of a limit goes to the next one, so that no wake-up is lost.

-- Sequences of this width sort as text. Fronts count down from the middle, backs count up.
local middle = 5e15
local function sequence_from(number)
  --- uses: control
  return redis.call('HINCRBY', control, 'sequence', number) - number
end
local function padded(sequence) return string.format('%016d', sequence) end

-- The range of all members of a set that begin with some text.
local function first_of(key, text, number)
  return redis.call('ZRANGE', key, '[' .. text .. '\0', '(' .. text .. '\1', 'BYLEX',
    'LIMIT', 0, number)
end

-- What stands in turns for a line: itself, or its priority and fair key.
local function group_of(line)
  return string.match(line, '^%d\t[^\t]+') or line
end

-- The turn that lines of a priority have come to: that of the one that was served last.
local turn_of = {}
local function current_turn(priority)
  --- uses: control
  turn_of[priority] = turn_of[priority]
    or tonumber(redis.call('HGET', control, 'turn:' .. priority) or 0)
  return turn_of[priority]
end

-- Let a line have its turn. A new one is put behind the first: those that come and go would
-- otherwise keep those that stay from theirs.
local function make_ready(line, turn)
  --- uses: turns, ready
  local priority, group = tonumber(string.sub(line, 1, 1)), group_of(line)
  local now_at = current_turn(priority)
  turn = turn and math.max(turn, now_at) or now_at + 1
  if group ~= line then
    redis.call('ZADD', ready, 0, group .. '\0' .. padded(sequence_from(1)) .. '\0' .. line)
  end
  redis.call('ZADD', turns[priority + 1], 'NX', string.format('%.6f', turn), group)
end

-- Put tasks into their lines, to the front or to the back.
local function put_into_lines(ids, names, is_front)
  --- uses: lines, priorities, placed
  local sequence = sequence_from(#ids)
  local members, places, is_known, distinct, fields = {}, {}, {}, {}, {}
  for n, id in ipairs(ids) do
    local offset = is_front and -(sequence + n) or sequence + n
    local place = names[n] .. '\0' .. padded(middle + offset)
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
      make_ready(distinct[n])
    end
  end
  if #fields > 0 then redis.call('HSET', placed, unpack(fields)) end
end

-- The line of a task, by what priorities says of it; nil if it has none.
local function line_in(place)
  if place and #place > 1 then return string.sub(place, 1, -18) end
end
