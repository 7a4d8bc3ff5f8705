-- Keys that are there only if something out of the ordinary has happened: a delay, a
-- failure, a theft, a death, a cancellation, a parked task. One look at all of them
-- spares the common exchange a look at each. Code that writes one of them sets
-- is_odd.
--- uses: later, dead, history, cancelling, parked, cancelled
local is_odd = redis.call('EXISTS', later, dead, history, cancelling, parked, cancelled) > 0
local function is_there(key) return is_odd and redis.call('EXISTS', key) == 1 end
