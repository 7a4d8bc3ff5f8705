--- needs: clock, lines, limit_in_the_way
-- Read why a task waits in its line.
--
-- KEY priorities  hash  id -> 0 urgent or 2 low; or its line and sequence
-- KEY placed      hash  line -> limit key that it waits for; empty: it is ready
-- KEY lines       zset  line, sequence, id; of all tasks that wait in lines
-- KEY limits      hash  limit -> its numbers; then those of the code, if others
-- KEY permits     hash  limit key -> how many tasks hold a permit
-- KEY rates       zset  limit key -> when its bucket is full
-- KEY turns[3]    zset  line -> its turn; urgent, normal, low
-- KEY ready       zset  fair key, sequence, line; lines of a fair key behind its head
-- KEY heads       hash  fair key -> its line that has a turn
-- KEY control     hash  token, sequence, turns
-- ARG id  str
--
-- Reply: tasks ahead of it in its line, -1 if it is not there; the first limit key of the line
-- that has no room, empty if all have some; how many may run or begin; how many run; ms until one
-- more may begin, -1 if it is no rate.

local place = redis.call('HGET', priorities, id)
local line = line_in(place)
if not line or not redis.call('ZSCORE', lines, place .. '\0' .. id) then
  return {-1, '', 0, 0, -1}
end
local ahead = redis.call('ZLEXCOUNT', lines, '[' .. line .. '\0', '(' .. place .. '\0' .. id)
local now = now_ms()
local limit_key = limit_in_the_way(line, now)
if not limit_key then return {ahead, '', 0, 0, -1} end
local most, period = limit_numbers(limit_key)
return {
  ahead,
  limit_key,
  most or 0,
  tonumber(redis.call('HGET', permits, limit_key)) or 0,
  period and math.max(0, refilled_at(limit_key, now) - now) or -1,
}
