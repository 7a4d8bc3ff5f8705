-- Read what ended in some minutes.
--
-- KEYS minutes  hash  name@version -> done, failed, milliseconds, and a histogram
--
-- Reply: for each minute a list of name, numbers, …

local reply = {}
for n = minutes_at, #KEYS do reply[#reply + 1] = redis.call('HGETALL', KEYS[n]) end
return reply
