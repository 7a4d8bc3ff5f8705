--- needs: clock, chunks, ring
-- Put tasks into an inbox, or aside until they are due. An id that is known already,
-- waiting or ended, is left as it is.
--
-- KEYS[1]  inbox    list   of the tasks' priority
-- KEYS[2]  task     hash   id -> envelope
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  later    zset   id -> when it is due
-- KEYS[5]  control  hash   closed
-- KEYS[6]  bell     list   wake-ups for idle workers
-- KEYS[7]  stats    hash   counts
-- ARGV[1]  due      int    ms since the epoch; 0: at once
-- ARGV[2]  delay    int    or else ms from now; 0: at once
-- ARGV[3]  most     int    tasks that the queue holds at most; 0: any number
-- ARGV[4]  count    int    number of tasks
-- ARGV[…]  tasks    str    id, envelope, id, envelope, …
--
-- Reply: 'ok', 'full' or 'closed'; then the positions, from 0, of known ids.

local due, delay, most, count =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ids, reply, pairs_new, ids_new, seen = {}, {'ok'}, {}, {}, {}
for i = 1, count do ids[i] = ARGV[3 + 2 * i] end

local waiting, ended = {}, {}
in_chunks(ids, 1000, function(...)
  local tasks, outcomes = redis.call('HMGET', KEYS[2], ...), redis.call('HMGET', KEYS[3], ...)
  for i = 1, #tasks do
    waiting[#waiting + 1] = tasks[i]
    ended[#ended + 1] = outcomes[i]
  end
end)
for i = 1, count do
  if waiting[i] or ended[i] or seen[ids[i]] then
    reply[#reply + 1] = i - 1
  else
    seen[ids[i]] = true
    ids_new[#ids_new + 1] = ids[i]
    pairs_new[#pairs_new + 1] = ids[i]
    pairs_new[#pairs_new + 1] = ARGV[4 + 2 * i]
  end
end
if #ids_new == 0 then return reply end

if redis.call('HEXISTS', KEYS[5], 'closed') == 1 then return {'closed'} end
if most > 0 and redis.call('HLEN', KEYS[2]) + #ids_new > most then return {'full'} end

in_chunks(pairs_new, 2000, function(...) redis.call('HSET', KEYS[2], ...) end)
if delay > 0 then due = now_ms() + delay end
if due > 0 then
  for _, id in ipairs(ids_new) do redis.call('ZADD', KEYS[4], due, id) end
else
  in_chunks(ids_new, 1000, function(...) redis.call('RPUSH', KEYS[1], ...) end)
  ring(KEYS[6], #ids_new)
end
redis.call('HINCRBY', KEYS[7], 'submitted', #ids_new)
return reply
