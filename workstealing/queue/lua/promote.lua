--- needs: clock, promote, wake_workers
-- Move delayed tasks whose time has come to their inboxes.
--
-- KEY inboxes[3]  list  urgent, normal, low
-- KEY task        hash  id -> envelope
-- KEY later       zset  id -> when it is due
-- KEY bell        list  wake-ups for idle workers
-- KEY priorities  hash  id -> 0 urgent or 2 low; of tasks that left such an inbox
-- ARG most  int  tasks moved at most
--
-- Reply: number of tasks moved.

local moved = promote(now_ms(), most)
if moved > 0 then wake_workers(moved) end
return moved
