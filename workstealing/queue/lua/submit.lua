--- needs: wake_workers
--- needs rarely: clock, first_write, wake_for_delayed, ending, enqueue, known_limits
-- Put up to a thousand tasks into an inbox or their lines, or aside until they are due. An
-- id that is known already, waiting or ended, is left as it is.
--
-- KEY task        hash  id -> envelope
-- KEY done        hash  id -> outcome
-- KEY later       zset  id -> when it is due
-- KEY control     hash  input_ended, refusals
-- KEY bell        list  wake-ups for idle workers
-- KEY priorities  hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY awaited     hash  id -> channels to publish its outcome on
-- KEY dead        zset  id -> when it was given up
-- KEY lines       zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]    zset  line -> its turn; urgent, normal, low
-- KEY ready       zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads       hash  fair key -> its line that has a turn
-- KEY placed      hash  line -> limit key that it waits for; empty: it is ready
-- KEY limits      hash  limit -> its numbers; then those of the code, if others
-- KEY blocked     zset  limit key, turn, line; of lines that wait for room
-- KEY refills     zset  limit key, or a limit after a tab -> when it has room
-- ARG priority  int  0 urgent, 1 normal, 2 low
-- ARG due       int  ms since the epoch; 0: at once
-- ARG delay_ms  int  or else from now; 0: at once
-- ARG most      int  tasks that the queue holds at most; 0: any number
-- ARG refusals  int  how often it had been full before the first call of several that are sent
--                    together: if it was since, none is taken; -1: the call is sent alone
-- ARG is_new    flag  the ids were drawn for this call, which is sent once: none is known
-- ARG count     int  number of tasks
-- ARG channel   str  where the outcomes are published; empty: nowhere
-- ARGS tasks    str  id and envelope of all, each id once; then, if any has a line, the lines of
--                    all, empty for none, and each limit of theirs, name and numbers
--
-- Reply: 'ok', 'full' or 'input_ended'; then of known ids the position, from 0, and 'live'
-- or how it has ended, each.

local last = tasks_at - 1 + 2 * count
local ids, waiting, ended, long = {}, {}, {}, 4096
for i = 1, count do ids[i] = ARGV[tasks_at + 2 * i - 2] end
local function refusal(fresh)
  if redis.call('HEXISTS', control, 'input_ended') == 1 then return 'input_ended' end
  if most == 0 then return nil end
  local is_after_others = refusals >= 0
    and tonumber(redis.call('HGET', control, 'refusals') or 0) ~= refusals
  -- Dead letters are kept until somebody looks at them, and must not keep others out.
  if is_after_others or redis.call('HLEN', task) - redis.call('ZCARD', dead) + fresh > most then
    if refusals >= 0 then first_write('HINCRBY', control, 'refusals', 1) end
    return 'full'
  end
end
local function standing(id, envelope)
  local length = redis.call('HSTRLEN', done, id)
  if length == 0 then return 'live' end
  return ending(length <= long and redis.call('HGET', done, id) or '', envelope)
end
local reply, fresh, refused, is_written = {'ok'}, count, nil, false
if is_new then
  refused = refusal(count)
else
  -- Only short outcomes of known ids are read. A dead letter has an outcome and an envelope.
  local is_long = #ARGV[tasks_at + 1] > long
  if count == 1 then
    ended[1] = redis.call('HEXISTS', done, ids[1]) == 1
  elseif is_long or redis.call('HSTRLEN', done, ids[1]) > long then
    for i = 1, count do ended[i] = redis.call('HEXISTS', done, ids[i]) == 1 end
  else
    ended = redis.call('HMGET', done, unpack(ids))
  end
  if count == 1 then
    -- A task that comes alone is mostly new, and writing it tells whether it is.
    refused = not ended[1] and refusal(1)
    if not ended[1] and not refused then
      is_written = redis.call('HSETNX', task, ids[1], ARGV[tasks_at + 1]) == 1
      waiting[1] = not is_written
    else
      waiting[1] = redis.call('HEXISTS', task, ids[1]) == 1
    end
  elseif is_long then
    -- To read long envelopes only to learn that they are there takes a second for 500 MB.
    for i = 1, count do waiting[i] = redis.call('HEXISTS', task, ids[i]) == 1 end
  else
    waiting = redis.call('HMGET', task, unpack(ids))
  end
  for i = 1, count do
    if waiting[i] or ended[i] then
      fresh = fresh - 1
      reply[#reply + 1] = i - 1
      reply[#reply + 1] = standing(ids[i], waiting[i])
    end
  end
  if fresh == 0 then return reply end
  if count > 1 then refused = refusal(fresh) end
end
if refused then return {refused} end

if channel ~= '' then
  for i = 1, count do
    if not waiting[i] and not ended[i] then redis.call('HSET', awaited, ids[i], channel) end
  end
end
if delay_ms > 0 then due = now_ms() + delay_ms end
local has_lines = #ARGV > last
local is_plain = fresh == count and due == 0
if is_plain and not is_written then redis.call('HSET', task, unpack(ARGV, tasks_at, last)) end
if is_plain and not has_lines then
  redis.call('RPUSH', inboxes[priority + 1], unpack(ids))
else
  local in_line, names = {}, {}
  for i = 1, count do
    local line = has_lines and ARGV[last + i] or ''
    if not waiting[i] and not ended[i] then
      local id = ids[i]
      if not is_plain and not is_written then
        redis.call('HSET', task, id, ARGV[tasks_at + 2 * i - 1])
      end
      if due == 0 and line ~= '' then
        in_line[#in_line + 1], names[#names + 1] = id, line
      else
        enqueue(id, priority, line, due)
      end
    end
  end
  if #in_line > 0 then put_into_lines(in_line, names, false) end
end
if has_lines then know_limits(last + count + 1) end
if due == 0 then wake_workers(fresh) else wake_for_delayed(fresh, due) end
return reply
