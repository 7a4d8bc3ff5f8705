--- needs: give_back, wake_workers, first_write, repair_turns
-- Compare a page of locks with the workers: a task that is locked to a worker nobody
-- knows, because a key was lost, goes back to its inbox. A permit whose task is not locked
-- comes back too.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY lock            hash  id -> worker#token
-- KEY workers         zset  worker -> end of its lease
-- KEY upkeep          hash  cursor
-- KEY bell            list  wake-ups for idle workers
-- KEY priorities      hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY lines           zset  line, sequence, id; of all tasks that wait in lines
-- KEY turns[3]        zset  line -> its turn; urgent, normal, low
-- KEY ready           zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads           hash  fair key -> its line that has a turn
-- KEY placed          hash  line -> limit key that it waits for; empty: it is ready
-- KEY control         hash  token, sequence, turns
-- KEY blocked         zset  limit key, turn, line; of lines that wait for room
-- KEY permits         hash  limit key -> how many tasks hold a permit
-- KEY permit_holders  hash  id -> limit keys that it holds permits of
-- KEY refills         zset  limit key, or a limit after a tab -> when it has room
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
local holders = redis.call('HSCAN', permit_holders,
  redis.call('HGET', upkeep, 'permit_cursor') or '0', 'COUNT', size)
for i = 1, #holders[2], 2 do
  local id = holders[2][i]
  if redis.call('HEXISTS', lock, id) == 0 then return_permits({id}) end
end
-- Counts of permits that were lost, or that others have written, are corrected while there are few.
local most_counted = 1000
if redis.call('HLEN', permits) <= most_counted
    and redis.call('HLEN', permit_holders) <= most_counted then
  local number_of, counted = {}, redis.call('HGETALL', permits)
  for _, text in ipairs(redis.call('HVALS', permit_holders)) do
    for key in string.gmatch(text, '[^\t]+') do number_of[key] = (number_of[key] or 0) + 1 end
  end
  for i = 1, #counted, 2 do
    local key, number = counted[i], number_of[counted[i]]
    if tonumber(counted[i + 1]) ~= number then
      redis.call('HDEL', permits, key)
      if number then redis.call('HSET', permits, key, number) end
      unblock(key)
    end
  end
end
-- Otherwise, an entry behind all others would never be looked at.
for priority = 0, 2 do
  repair_turns(priority, redis.call('ZRANGE', turns[priority + 1], -size, -1, 'WITHSCORES'))
end
first_write('HSET', upkeep, 'cursor', page[1], 'permit_cursor', holders[1])
if returned + unblocked > 0 then wake_workers(returned + unblocked) end
return returned
