--- needs: clock
-- Take the lease to compute one value, if it still needs to be computed.
--
-- KEY value  hash  value, took, expires, by, read
-- KEY due    zset  name -> when to recompute it, ms
-- KEY lease  str   token of the process that computes
-- ARG name      str
-- ARG token     str  ours
-- ARG lease_ms  int
-- ARG seen      str  when the value that we saw expires; empty: we saw none;
--                          'due': we only know that it was due
--
-- Reply: verdict (1 ours, 0 another process computes, -1 somebody did already,
-- -2 nobody read it since it was computed: it is let go), time in ms.

local now = now_ms()
local found = redis.call('HMGET', value, 'expires', 'read')
local due_at = redis.call('ZSCORE', due, name)
local holder = redis.call('GET', lease)
if holder == token then return {1, now} end
if holder then return {0, now} end
if seen == 'due' then
  if not due_at or tonumber(due_at) > now then return {-1, now} end
  if found[2] ~= '1' then
    redis.call('ZREM', due, name)
    return {-2, now}
  end
elseif (found[1] or '') ~= seen then
  return {-1, now}
end
redis.call('SET', lease, token, 'PX', lease_ms)
-- Others find the next name meanwhile, and this one again if we do not come back.
redis.call('ZADD', due, 'XX', now + lease_ms, name)
return {1, now}
