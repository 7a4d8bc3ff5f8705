--- needs: unusual, caller, token, priorities
--- needs rarely: history, biography, suspects, utf8, left_over, uniques, paused, obstacles
-- Take tasks from the front of a list: of the worker's own deque, where they are locked
-- to it, or of an inbox, where they are locked to nobody.
--- uses: want
local tasks = {}           -- id, token, attempt, envelope, …
local befell = {}          -- id, the first line of its history, …; of tasks that have one
local room = want          -- tasks that it may still take
local is_seen = {}         -- ids it has come across; a list may name one twice
local is_alone = false     -- a suspect runs, or waits to run: nothing may join it
local looks_left = 20      -- at stretches of a list with no task to take
local has_deque_changed = false
-- Redis stands still while envelopes are copied, and holds a reply in memory whole: what one call
-- reads of them is bounded. How long they are is not known before, so it begins with a few.
local bytes_left, number_read, longest = 4 * 1024 * 1024, 0, 1

-- How many envelopes to read at once: as many as may be read if they are like those before, and
-- a hundred at most, for the next ones may be much longer.
local function next_stretch()
  local few, most, growth = 8, 100, 12
  local trusted = math.min(most, math.max(few, growth * number_read))
  return math.max(1, math.min(trusted, math.floor(bytes_left / longest)))
end

-- Read the envelopes of the first ids, up to the last one or to what may be read, but at least
-- one; return them, and how many they are.
local function read_first(ids, last)
  --- uses: task
  local envelopes, read = {}, 0
  while read < last and (bytes_left > 0 or read == 0) do
    local stretch = math.min(next_stretch(), last - read)
    local found = redis.call('HMGET', task, unpack(ids, read + 1, read + stretch))
    for n = 1, stretch do
      local envelope = found[n]
      envelopes[read + n] = envelope
      if envelope then
        bytes_left = bytes_left - #envelope
        longest = math.max(longest, #envelope)
      end
    end
    read = read + stretch
    number_read = number_read + stretch
  end
  return envelopes, read
end

-- Put the ids behind the first ones back to the front of the list that they came from.
local function put_back(list, ids, number)
  local back = {}
  for n = #ids, number + 1, -1 do back[#back + 1], ids[n] = ids[n], nil end
  if #back > 0 then redis.call('LPUSH', list, unpack(back)) end
end

-- Lock tasks that were removed from where they waited, and return those that were taken. The
-- inbox that they come from is named, if it is one, and their envelopes if they were read.
local function accept(ids, is_own, inbox, envelopes)
  --- uses: task, lock, running, history, unique_of
  envelopes = envelopes or redis.call('HMGET', task, unpack(ids))
  local is_left_over, counts
  if inbox and is_odd then is_left_over, counts = left_over(ids, envelopes) end
  if is_left_over then forget_left_over(ids, #ids, is_left_over, counts) end
  -- Nobody has a lock on what is in an inbox, unless it is left over. Of a single task, it
  -- is enough to learn that when it is locked.
  local is_single = #ids == 1 and not is_own
  local holders = is_single and {} or redis.call('HMGET', lock, unpack(ids))
  local histories = is_there(history) and redis.call('HMGET', history, unpack(ids))
  local taken_at, taken, begun, locked, gone = string.format('%d', now), {}, {}, {}, {}
  local has_pauses, aside, names, with_history = is_odd and is_any_name_paused(), {}, {}, nil
  for n, id in ipairs(ids) do
    local holder, envelope = holders[n], envelopes[n]
    local is_free = is_own and is_mine(holder) or not is_own and not holder
    local is_next = envelope and is_free and not is_seen[id]
      and not (is_left_over and is_left_over[n])
    if is_next then is_seen[id] = true end
    if is_next and string.find(id, '[\128-\255]') and not is_utf8(id) then
      reject(id)
    elseif is_next and has_pauses and paused_name(envelope) then
      aside[#aside + 1] = id
      names[#names + 1] = paused_name(envelope)
    elseif is_next and (not is_single or
        redis.call('HSETNX', lock, id, mine .. new_token()) == 1) then
      local held_by = holder and string.sub(holder, #mine + 1) or tostring(new_token())
      if not holder and not is_single then
        locked[#locked + 1] = id
        locked[#locked + 1] = mine .. held_by
      end
      taken[#taken + 1] = id
      begun[#begun + 1] = id
      begun[#begun + 1] = taken_at
      local attempts = histories and read_history(histories[n]) or 0
      if histories and histories[n] then
        with_history = with_history or {}
        with_history[#with_history + 1] = n
        befell[#befell + 1] = id
        befell[#befell + 1] = string.match(histories[n], '^[^\n]*')
      end
      tasks[#tasks + 1] = id
      tasks[#tasks + 1] = held_by
      tasks[#tasks + 1] = attempts + 1
      tasks[#tasks + 1] = envelope
      room = room - 1
    elseif not envelope then
      gone[#gone + 1] = id
    end
  end
  if #begun > 0 then redis.call('HSET', running, unpack(begun)) end
  if #locked > 0 then redis.call('HSET', lock, unpack(locked)) end
  if with_history then note_taken(with_history, ids, envelopes, histories, now) end
  if #taken > 0 and is_there(unique_of) then free_uniques(taken, 'started') end
  if inbox then record_priority(inbox, taken) end
  if #gone > 0 then redis.call('HDEL', lock, unpack(gone)) end
  if #aside > 0 then
    if inbox then record_priority(inbox, aside) end
    put_aside(aside, names)
  end
  return taken
end

local function take_from(list, is_own)
  local has_pauses = is_odd and is_any_name_paused()
  while room > 0 and not is_alone and looks_left > 0 do
    local room_before, asked = room, math.min(room, 500)
    local ids = redis.call('LPOP', list, asked)
    if not ids or #ids == 0 then return end
    local is_list_empty = #ids < asked
    if is_own then has_deque_changed = true end
    local suspect = is_odd and suspect_among(ids)
    if suspect then
      is_list_empty = false
      local last = number_before(suspect)
      -- What must not run beside it goes back into the list.
      put_back(list, ids, last)
      is_alone = last == 0
      if is_alone then return end
    end
    local envelopes, read = read_first(ids, #ids)
    put_back(list, ids, read)
    accept(ids, is_own, not is_own and list or nil, envelopes)
    if suspect then is_alone = #tasks > 0 end
    if bytes_left <= 0 then room = 0 end
    if is_list_empty then return end
    if room == room_before then
      looks_left = looks_left - 1
      if is_odd then drop_cancelled(list) end
      if has_pauses then set_paused_aside(list, is_own) end
    end
  end
end
