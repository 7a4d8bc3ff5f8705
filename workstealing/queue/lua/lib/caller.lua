--- needs: clock
-- The time, and what the locks of the worker that this is about begin with.
--- uses: worker
local now = now_ms()
local mine = worker .. '#'
local function is_mine(holder)
  return holder and string.sub(holder, 1, #mine) == mine
end
