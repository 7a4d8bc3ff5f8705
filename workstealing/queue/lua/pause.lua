--- needs: clock, first_write
-- Pause a task name, or all of a queue: nothing of it is begun until it is resumed.
--
-- KEY paused  hash  task name, or * for all -> since when; 0: it is being resumed
-- ARG name  str  of the tasks; * for all
--
-- Reply: since when it was paused already, 0 if it was not.

local since = tonumber(redis.call('HGET', paused, name) or 0)
if since == 0 then first_write('HSET', paused, name, string.format('%d', now_ms())) end
return since
