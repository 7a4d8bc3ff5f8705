-- Keys that are there only if something out of the ordinary has happened: a delay, a
-- failure, a theft, a death, a cancellation, a parked task, a unique one, a limit, a pause, a chain or group. One
-- look at all of them spares the common exchange a look at each. Code that is about to write
-- one of them says so with becomes_odd. Priorities and schedules are rare too, but alone they
-- make nothing odd.
--- uses: later, dead, history, cancelling, parked, cancelled, paused, priorities, unique_of
--- uses: placed, permit_holders, ticks, followers, steps
local number_of_odd = redis.call('EXISTS', later, dead, history, cancelling, parked, cancelled,
  paused, priorities, unique_of, placed, permit_holders, ticks, followers, steps)
local has_priorities = number_of_odd > 0 and redis.call('EXISTS', priorities) == 1
local has_ticks = number_of_odd > 0 and redis.call('EXISTS', ticks) == 1
local is_odd = number_of_odd > (has_priorities and 1 or 0) + (has_ticks and 1 or 0)
local was_there = {}
local function is_there(key)
  if is_odd and was_there[key] == nil then was_there[key] = redis.call('EXISTS', key) == 1 end
  return is_odd and was_there[key]
end
local function becomes_odd() is_odd, was_there = true, {} end
