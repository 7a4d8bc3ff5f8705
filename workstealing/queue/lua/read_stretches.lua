-- Read what ended, by minute or by ten minutes.
--
-- KEYS tenfold  hash  which of its ten, name@version -> done, failed, milliseconds, and a histogram
--
-- Reply: for each hash a list of name, numbers, …

local reply = {}
for n = tenfold_at, #KEYS do reply[#reply + 1] = redis.call('HGETALL', KEYS[n]) end
return reply
