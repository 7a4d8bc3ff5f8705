--- needs: clock, ring
-- Put up to a thousand tasks into an inbox, or aside until they are due. An id that is
-- known already, waiting or ended, is left as it is.
--
-- KEYS[1]  inbox    list   of the tasks' priority
-- KEYS[2]  task     hash   id -> envelope
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  later    zset   id -> when it is due
-- KEYS[5]  control  hash   closed
-- KEYS[6]  bell     list   wake-ups for idle workers
-- KEYS[7]  stats    hash   counts
-- KEYS[8]  graves   set    cancelled ids that an inbox still names
-- KEYS[9]  inbox0   list   urgent
-- KEYS[10] inbox1   list   normal
-- KEYS[11] inbox2   list   when there is nothing else
-- KEYS[12] awaited  hash   id -> channels of those who wait for its outcome
-- KEYS[13] dead     zset   id -> when it was given up
-- ARGV[1]  due      int    ms since the epoch; 0: at once
-- ARGV[2]  delay    int    or else ms from now; 0: at once
-- ARGV[3]  most     int    tasks that the queue holds at most; 0: any number
-- ARGV[4]  count    int    number of tasks
-- ARGV[5]  channel  str    of one who will wait for the outcomes; or empty
-- ARGV[…]  ids      str    of all, each once; then the envelopes of all
--
-- Reply: 'ok', 'full' or 'closed'; then the positions, from 0, of known ids.

local due, delay, most, count =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local last = 5 + count
local waiting = redis.call('HMGET', KEYS[2], unpack(ARGV, 6, last))
local ended = {}
if redis.call('EXISTS', KEYS[3]) == 1 then
  ended = redis.call('HMGET', KEYS[3], unpack(ARGV, 6, last))
end
local reply = {'ok'}
for i = 1, count do
  if waiting[i] or ended[i] then reply[#reply + 1] = i - 1 end
end
local fresh = count - #reply + 1
if fresh == 0 then return reply end
if redis.call('HEXISTS', KEYS[5], 'closed') == 1 then return {'closed'} end
-- Dead letters are kept until somebody looks at them, and must not keep others out.
if most > 0 and redis.call('HLEN', KEYS[2]) - redis.call('ZCARD', KEYS[13]) + fresh > most then
  return {'full'}
end

if redis.call('EXISTS', KEYS[8]) == 1 then
  -- Or else an inbox names the task twice, and it is taken when it should wait.
  for i = 1, count do
    local id = ARGV[5 + i]
    if not waiting[i] and not ended[i] and redis.call('SREM', KEYS[8], id) == 1 then
      for inbox = 9, 11 do redis.call('LREM', KEYS[inbox], 1, id) end
    end
  end
end
if ARGV[5] ~= '' then
  for i = 1, count do
    if not waiting[i] and not ended[i] then redis.call('HSET', KEYS[12], ARGV[5 + i], ARGV[5]) end
  end
end
if delay > 0 then due = now_ms() + delay end
if fresh == count and due == 0 then
  local tasks = {}
  for i = 1, count do
    tasks[2 * i - 1] = ARGV[5 + i]
    tasks[2 * i] = ARGV[last + i]
  end
  redis.call('HSET', KEYS[2], unpack(tasks))
  redis.call('RPUSH', KEYS[1], unpack(ARGV, 6, last))
else
  for i = 1, count do
    local id = ARGV[5 + i]
    if not waiting[i] and not ended[i] then
      redis.call('HSET', KEYS[2], id, ARGV[last + i])
      if due > 0 then redis.call('ZADD', KEYS[4], due, id) else redis.call('RPUSH', KEYS[1], id) end
    end
  end
end
if due == 0 then ring(KEYS[6], fresh) end
redis.call('HINCRBY', KEYS[7], 'submitted', fresh)
return reply
