-- Keys that are there only if something out of the ordinary has happened: a delay, a failure, a
-- theft, a death, a cancellation, a parked task, a unique one, a limit, a pause, a chain or group.
-- One look at all of them spares the common exchange a look at each. Code that is about to write
-- one of them says so with becomes_odd. Priorities, schedules and inboxes that are urgent or low
-- are rare too, but alone they make nothing odd.
--- uses: later, dead, history, cancelling, parked, cancelled, paused, priorities, unique_of
--- uses: placed, permit_holders, ticks, followers, steps, inboxes
local urgent, low = inboxes[1], inboxes[3]
local is_odd = redis.call('EXISTS', later, dead, history, cancelling, parked, cancelled, paused,
  priorities, unique_of, placed, permit_holders, ticks, followers, steps, urgent, low)
-- A key that is named several times counts as often: one command tells of each.
local rare = is_odd > 0 and redis.call('EXISTS', priorities, ticks, ticks,
  urgent, urgent, urgent, urgent, low, low, low, low, low, low, low, low) or 0
local has_priorities, has_ticks = rare % 2 == 1, rare % 4 >= 2
local rare_lists = rare - rare % 4 -- 4: an urgent inbox; 8: a low one
is_odd = is_odd > (has_priorities and 1 or 0) + (has_ticks and 1 or 0)
  + (rare % 8 >= 4 and 1 or 0) + (rare >= 8 and 1 or 0)
local was_there = {}
local function is_there(key)
  if is_odd and was_there[key] == nil then was_there[key] = redis.call('EXISTS', key) == 1 end
  return is_odd and was_there[key]
end
local function becomes_odd() is_odd, was_there = true, {} end
