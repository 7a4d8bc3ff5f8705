--- needs: wake_workers
-- Wake a worker for tasks that were just put aside until they are due, if there were no others:
-- one that rests does not know of them, and nobody would look in time.
local function wake_for_delayed(number)
  --- uses: later
  if number > 0 and redis.call('ZCARD', later) <= number then wake_workers(1) end
end
