-- Name tasks that have ended, in the order in which they did or the latest first. Ids stay where
-- they are until they leave at the front, so a page goes on behind the last one of the page before.
--
-- KEY outcome_times  list  id and when its outcome expires, in the order of their ends
-- ARG most    int   named at most
-- ARG latest  flag  the latest first
-- ARG after   str   the last one of the page before, as it was named; empty: from the beginning
-- ARG far     int   the latest are searched for it so far, and no further
--
-- Reply: id and when its outcome expires, as they are written.

local place = after ~= '' and redis.call('LPOS', outcome_times, after, 'RANK', latest and -1 or 1,
  'MAXLEN', latest and far or 0)
if not latest then
  -- If it is no longer there, it has left at the front, with all that stood before it.
  local first = place and place + 1 or 0
  return redis.call('LRANGE', outcome_times, first, first + most - 1)
end
if after ~= '' and (not place or place == 0) then return {} end
local last = place and place - 1 or -1
local named = redis.call('LRANGE', outcome_times,
  place and math.max(0, place - most) or -most, last)
local reply = {}
for n = #named, 1, -1 do reply[#reply + 1] = named[n] end
return reply
