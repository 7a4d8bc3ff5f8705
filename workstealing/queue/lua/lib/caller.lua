--- needs: clock
-- The time, and how every lock of the worker in question begins.
--- uses: worker
local now = now_ms()
local mine = worker .. '#'
local function is_mine(holder)
  return holder and string.sub(holder, 1, #mine) == mine
end
