--- needs: wake_workers
-- Wake a worker for tasks that were just put aside until they are due, if nothing else is due by
-- then: one that rests knows only what was due first, and nobody would look in time.
local function wake_for_delayed(number, due)
  --- uses: later
  if number > 0 and redis.call('ZCOUNT', later, '-inf', due) <= number then wake_workers(1) end
end
