--- needs: history
-- The biography of a task that has a history: the events of that, with those of its submission and
-- of being taken. It is kept beside its outcome when it has ended.

-- When a task was submitted and is due, as its envelope says where this library writes it.
local function submission_events(envelope)
  local head = string.gsub(string.sub(envelope, 1, 1000), '^{"sig":"[^"]*",', '{', 1)
  local fields = string.match(head, '^{"v":1,"name":"[^"\\]*","version":%d+(.*)$') or ''
  fields = string.gsub(fields, '^,"priority":%d', '', 1)
  local at, behind = string.match(fields, '^,"at":(%d+)(.*)$')
  if not at or #at > 15 then return {} end
  local due = string.match(behind, '^,"due":(%d+)')
  return {'n' .. at, due and #due <= 15 and 'q' .. due or nil}
end

-- Note that the worker took tasks that have a history, at these positions.
local function note_taken(positions, ids, envelopes, histories, now)
  --- uses: history, worker
  local fields, taken = {}, event('t', now, worker)
  for _, n in ipairs(positions) do
    local attempts, deaths, steals, failures, events = read_history(histories[n])
    if string.sub(events, 1, 1) ~= 'n' then
      local known = {}
      for one in string.gmatch(events, '[^\t]+') do known[#known + 1] = one end
      events = add_events(table.concat(submission_events(envelopes[n]), '\t'), known)
    end
    fields[#fields + 1] = ids[n]
    fields[#fields + 1] =
      write_history(attempts, deaths, steals, failures, add_events(events, {taken}))
  end
  redis.call('HSET', history, unpack(fields))
end

-- Forget the histories of tasks that have ended, but keep the events of those that have an outcome
-- in the list: id, outcome, id, outcome, …
local function keep_biographies(ids, outcomes, now)
  --- uses: history, biographies
  local has_outcome, gone, kept = {}, {}, {}
  for n = 1, #outcomes, 2 do has_outcome[outcomes[n]] = true end
  for n, text in ipairs(redis.call('HMGET', history, unpack(ids))) do
    if text then
      local id = ids[n]
      gone[#gone + 1] = id
      local attempts, deaths, steals, _, events = read_history(text)
      if has_outcome[id] then
        events = add_events(events, {event('e', now)})
        kept[#kept + 1] = id
        kept[#kept + 1] = write_history(attempts, deaths, steals, '', events)
      end
    end
  end
  if #gone > 0 then redis.call('HDEL', history, unpack(gone)) end
  if #kept > 0 then redis.call('HSET', biographies, unpack(kept)) end
end
