--- needs: unblock, wake_workers, first_write
-- Set the numbers of a limit, or go back to those of the code. Lines that wait for it get
-- their turn, some at a time: called again until all have had it.
--
-- KEY limits      hash  limit -> its numbers; then those of the code, if others
-- KEY blocked     zset  limit key, turn, line; of lines that wait for room
-- KEY placed      hash  line -> limit key that it waits for; empty: it is ready
-- KEY turns[3]    zset  line -> its turn; urgent, normal, low
-- KEY ready       zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads       hash  fair key -> its line that has a turn
-- KEY lines       zset  line, sequence, id; of all tasks that wait in lines
-- KEY control     hash  token, sequence, turns
-- KEY priorities  hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY bell        list  wake-ups for idle workers
-- ARG name     str
-- ARG numbers  str  as limits has them; empty: those of the code
-- ARG most     int  lines that get their turn at most
--
-- Reply: 1 if there is such a limit, 2 if it is one of the other kind; then 1 if lines are left
-- that wait for it.

local known = redis.call('HGET', limits, name)
if not known then return {0, 0} end
local of_code = string.match(known, ' (%S+)$') or known
local is_rate, was_rate = string.find(numbers, '/') ~= nil, string.find(of_code, '/') ~= nil
if numbers ~= '' and is_rate ~= was_rate then return {2, 0} end
first_write('HSET', limits, name, numbers == '' and of_code or numbers .. ' ' .. of_code)

local has_more = unblock_limit(name, most)
wake_workers(unblocked)
return {1, has_more and 1 or 0}
