--- needs: inboxes, ring
-- Compare a page of locks with the workers: a task that is locked to a worker nobody
-- knows, because a key was lost, goes back to its inbox.
--
-- KEYS[1]  inbox0   list   urgent
-- KEYS[2]  inbox1   list   normal
-- KEYS[3]  inbox2   list   when there is nothing else
-- KEYS[4]  task     hash   id -> envelope
-- KEYS[5]  lock     hash   id -> worker#token
-- KEYS[6]  workers  zset   worker -> end of its lease
-- KEYS[7]  upkeep   hash   cursor
-- KEYS[8]  bell     list   wake-ups for idle workers
-- ARGV[1]  page     int    locks looked at, about
--
-- Reply: number of tasks given back.

local cursor = redis.call('HGET', KEYS[7], 'cursor') or '0'
local page = redis.call('HSCAN', KEYS[5], cursor, 'COUNT', ARGV[1])
local returned = 0
for i = 1, #page[2], 2 do
  local id, worker = page[2][i], string.match(page[2][i + 1], '^(.*)#')
  if not worker or not redis.call('ZSCORE', KEYS[6], worker) then
    give_back({KEYS[1], KEYS[2], KEYS[3]}, KEYS[4], KEYS[5], id)
    returned = returned + 1
  end
end
redis.call('HSET', KEYS[7], 'cursor', page[1])
if returned > 0 then ring(KEYS[8], returned) end
return returned
