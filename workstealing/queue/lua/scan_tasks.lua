--- needs: clock, both_ends
-- Look at some of the tasks that are not over, and at dead letters, wherever they are.
-- A whole scan meets each task that is there from its beginning to its end; one may be met
-- twice.
--
-- KEY task          hash  id -> envelope
-- KEY lock          hash  id -> worker#token
-- KEY later         zset  id -> when it is due
-- KEY dead          zset  id -> when it was given up
-- KEY parked        hash  id -> ability that it waits for
-- KEY paused_tasks  hash  id -> its place among those put aside by a pause
-- ARG cursor  str  where to go on; 0 is the beginning
-- ARG count   int  tasks, about
-- ARG most    int  bytes of an envelope that are read, about
--
-- Reply: now, the next cursor (0: the end), bytes of envelopes; then for each task its id,
-- envelope, lock, whether it is delayed, whether it is dead, the ability it needs, and whether
-- it was put aside.

local scanned = redis.call('HSCAN', task, cursor, 'COUNT', count)
local found = scanned[2]
local reply, bytes = {now_ms(), scanned[1], 0}, 0
local is_any_aside = redis.call('EXISTS', paused_tasks) == 1
for n = 1, #found, 2 do
  local id = found[n]
  bytes = bytes + #found[n + 1]
  reply[#reply + 1] = id
  reply[#reply + 1] = both_ends(found[n + 1])
  reply[#reply + 1] = redis.call('HGET', lock, id) or ''
  reply[#reply + 1] = redis.call('ZSCORE', later, id) and 1 or 0
  reply[#reply + 1] = redis.call('ZSCORE', dead, id) and 1 or 0
  reply[#reply + 1] = redis.call('HGET', parked, id) or ''
  reply[#reply + 1] = is_any_aside and redis.call('HEXISTS', paused_tasks, id) or 0
end
reply[3] = bytes
return reply
