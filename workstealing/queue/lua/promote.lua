--- needs: clock, promote, wake_workers
-- Move delayed tasks whose time has come to their inboxes.
--
-- KEY inboxes[3]  list  urgent, normal, when there is nothing else
-- KEY task        hash  id -> envelope
-- KEY later       zset  id -> when it is due
-- KEY bell        list  wake-ups for idle workers
-- ARG most  int  tasks moved at most
--
-- Reply: tasks moved, ms until the next one is due; -1 if none waits.

local now = now_ms()
local moved = promote(now, most)
if moved > 0 then wake_workers(moved) end
local next_one = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')
return {moved, next_one[2] and math.max(0, tonumber(next_one[2]) - now) or -1}
