--- needs: give_back, wake_workers, first_write
-- Compare a page of locks with the workers: a task that is locked to a worker nobody
-- knows, because a key was lost, goes back to its inbox.
--
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY task        hash  id -> envelope
-- KEY lock        hash  id -> worker#token
-- KEY workers     zset  worker -> end of its lease
-- KEY upkeep      hash  cursor
-- KEY bell        list  wake-ups for idle workers
-- KEY priorities  hash  id -> 0 urgent or 2 low; of tasks that left such an inbox
-- ARG size  int  locks looked at, about
--
-- Reply: number of tasks given back.

local cursor = redis.call('HGET', upkeep, 'cursor') or '0'
local page = redis.call('HSCAN', lock, cursor, 'COUNT', size)
local returned = 0
for i = 1, #page[2], 2 do
  local id, worker = page[2][i], string.match(page[2][i + 1], '^(.*)#')
  if not worker or not redis.call('ZSCORE', workers, worker) then
    give_back(id)
    returned = returned + 1
  end
end
first_write('HSET', upkeep, 'cursor', page[1])
if returned > 0 then wake_workers(returned) end
return returned
