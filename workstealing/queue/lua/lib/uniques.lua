-- Unique keys. A unique task is in unique_of, until it ends, with how long it is unique
-- (s: until started, d: until done, w: for a window), its priority, when the first of those
-- that it replaced came, and its key. uniques says which task has a key. A window ends by
-- its own time, whatever becomes of the task.
local function read_unique(text)
  local ends, priority, first, key = string.match(text or '', '^(%a)(%d):(%d+):(.*)$')
  return ends, tonumber(priority), tonumber(first), key
end

-- Take the keys from tasks that have 'started', have 'ended', or are 'dead': such a letter
-- remembers its key, for it may be replayed.
local function free_uniques(ids, what)
  --- uses: uniques, unique_of
  for n, text in ipairs(redis.call('HMGET', unique_of, unpack(ids))) do
    local id, ends, _, _, key = ids[n], read_unique(text)
    if ends == 's' or ends == 'd' and what ~= 'started' then
      if redis.call('HGET', uniques, key) == id then redis.call('HDEL', uniques, key) end
    end
    if ends == 's' or what == 'ended' or what == 'dead' and ends == 'w' then
      redis.call('HDEL', unique_of, id)
    end
  end
end
