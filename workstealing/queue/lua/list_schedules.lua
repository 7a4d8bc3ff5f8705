--- needs: clock
-- Describe some of the schedules: a page of them, or one.
--
-- KEY schedules           hash  schedule -> definition
-- KEY ticks               zset  schedule -> its next tick
-- KEY firings             hash  schedule -> tick:at:fired:missed
-- KEY declared_schedules  hash  schedule -> release:keep:timing:digest of its code
-- KEY paused_schedules    hash  schedule -> since
-- ARG cursor  str  where to go on; 0: from the beginning
-- ARG size    int  of a page, roughly
-- ARG name    str  of one schedule; empty: a page
--
-- Reply: now, the next cursor (0: there are no more); then of each: name, definition, next
-- tick, firings, declared, paused since; an empty string for each that is missing.

local following, found = '0', {}
if name == '' then
  following, found = unpack(redis.call('HSCAN', schedules, cursor, 'COUNT', size))
else
  local definition = redis.call('HGET', schedules, name)
  if definition then found = {name, definition} end
end
local reply = {now_ms(), following}
for i = 1, #found, 2 do
  local each = found[i]
  for _, value in ipairs({
    each, found[i + 1], redis.call('ZSCORE', ticks, each) or '',
    redis.call('HGET', firings, each) or '', redis.call('HGET', declared_schedules, each) or '',
    redis.call('HGET', paused_schedules, each) or '',
  }) do reply[#reply + 1] = value end
end
return reply
