--- needs: clock, promote, permits, wake_workers
-- Move delayed tasks whose time has come to their inboxes, and let lines have their turn
-- whose rate has room again.
--
-- KEY inboxes[3]      list  urgent, normal, low
-- KEY task            hash  id -> envelope
-- KEY later           zset  id -> when it is due
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
-- ARG most  int  tasks moved at most
--
-- Reply: number of tasks moved, and of rates.

local now = now_ms()
local moved = promote(now, most) + renew_rates(now, most)
if moved > 0 then wake_workers(moved) end
return moved
