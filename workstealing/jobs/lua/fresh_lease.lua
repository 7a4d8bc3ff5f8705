--- needs: clock
-- Take the lease to compute one value, if it still needs to be computed.
--
-- KEYS[1]  value    hash   value, took, expires, by, read
-- KEYS[2]  due      zset   name -> when to compute it anew, ms
-- KEYS[3]  lease    str    token of the process that computes
-- ARGV[1]  name     str
-- ARGV[2]  token    str    ours
-- ARGV[3]  lease    int    ms
-- ARGV[4]  seen     str    when the value that we saw expires; empty: we saw none;
--                          'due': we only know that it was due
--
-- Reply: verdict (1 ours, 0 another process computes, -1 somebody did already,
-- -2 nobody read it since it was computed: it is let go), time in ms.

local now = now_ms()
local found = redis.call('HMGET', KEYS[1], 'expires', 'read')
local due = redis.call('ZSCORE', KEYS[2], ARGV[1])
local holder = redis.call('GET', KEYS[3])
if holder == ARGV[2] then return {1, now} end
if holder then return {0, now} end
if ARGV[4] == 'due' then
  if not due or tonumber(due) > now then return {-1, now} end
  if found[2] ~= '1' then
    redis.call('ZREM', KEYS[2], ARGV[1])
    return {-2, now}
  end
elseif (found[1] or '') ~= ARGV[4] then
  return {-1, now}
end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
-- Others find the next name meanwhile, and this one again if we do not come back.
redis.call('ZADD', KEYS[2], 'XX', now + ARGV[3], ARGV[1])
return {1, now}
