-- The history of a task, kept only if something out of the ordinary happened to it: how many
-- attempts failed, how many workers died running it, how often it was stolen; then its last events.
-- Behind that stand the outcomes of its last failed attempts, a line each, the latest first.
--
-- An event is a letter, the time and the workers that it is about; events are separated by tabs:
--   n submitted (by the clock of the producer)   q due   t taken   e ended   ~ earlier ones went
--   s stolen: thief, victim   f failed, and is tried again   z asked to be run again later
--   h handed back   l lease ended   d died and was replaced   b given back
--   p parked   r its name was resumed   c asked to stop   v replayed, once it was a dead letter
local function read_history(text)
  local attempts, deaths, steals, events, failures =
    string.match(text or '', '^(%d+):(%d+):(%d+):([^\n]*)(.*)$')
  return tonumber(attempts or 0), tonumber(deaths or 0), tonumber(steals or 0), failures or '',
    events or ''
end

local function write_history(attempts, deaths, steals, failures, events)
  return attempts .. ':' .. deaths .. ':' .. steals .. ':' .. events .. failures
end

local function event(letter, ms, ...)
  return table.concat({letter .. string.format('%d', ms), ...}, ' ')
end

-- Append events. Of many, the last are kept, and when it was submitted.
local function add_events(events, added)
  local most, list = 12, {}
  for one in string.gmatch(events, '[^\t]+') do list[#list + 1] = one end
  for _, one in ipairs(added) do list[#list + 1] = one end
  if #list > most then
    local oldest = string.sub(list[1], 1, 1) == 'n' and 2 or 1
    while #list > most do table.remove(list, oldest) end
    list[oldest] = '~'
  end
  return table.concat(list, '\t')
end

-- Append when a worker took a task, unless that is the last that is known.
local function add_taken(events, taken_at, name)
  if string.find(events, '^t[^\t]*$') or string.find(events, '\tt[^\t]*$') then return events end
  -- A ! before the time says that it must not come back.
  local ms = tonumber((string.gsub(taken_at or '', '^!', '')))
  return ms and add_events(events, {event('t', ms, name)}) or events
end

local function add_failure(failures, outcome)
  if outcome == '' then return failures end
  local lines = {outcome}
  for line in string.gmatch(failures, '[^\n]+') do
    if #lines < 3 then lines[#lines + 1] = line end
  end
  return '\n' .. table.concat(lines, '\n')
end

-- Note the same events for several tasks.
local function note_events(ids, added)
  --- uses: history
  local slice = 1000
  for first = 1, #ids, slice do
    local last, fields = math.min(first + slice - 1, #ids), {}
    for n, text in ipairs(redis.call('HMGET', history, unpack(ids, first, last))) do
      local attempts, deaths, steals, failures, events = read_history(text)
      fields[2 * n - 1] = ids[first + n - 1]
      fields[2 * n] = write_history(attempts, deaths, steals, failures, add_events(events, added))
    end
    redis.call('HSET', history, unpack(fields))
  end
end
