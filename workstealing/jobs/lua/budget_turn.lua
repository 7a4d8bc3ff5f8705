--- needs: despite_full, stamp, usage
-- Return whether the namespace is over its budget, and draw keys to inspect.
--
-- KEY index  zset  key -> when it was last entered, ms
-- KEY sizes  hash  key -> bytes when last measured
-- KEY state  hash  stamp, turn, bytes
-- KEY lease  str   token of the recruit that evicts
-- ARG most_keys   int  budget; -1: none
-- ARG most_bytes  int  budget; -1: none
-- ARG sample      int  upper bound on keys drawn
-- ARG token       str  ours
-- ARG lease_ms    int
--
-- Reply: verdict (2 over budget, 1 check the index, 0 scan, -1 another recruit
-- evicts), time, then the keys drawn.

despite_full(state)
local keys, bytes = usage(index, sizes, state)
local over = most_keys >= 0 and keys > most_keys
  or most_bytes >= 0 and bytes > most_bytes
if over then
  local holder = redis.call('GET', lease)
  if holder and holder ~= token then return {-1, 0} end
  redis.call('SET', lease, token, 'PX', lease_ms)
end
local now = stamp(state, 1)
local check = redis.call('HINCRBY', state, 'turn', 1) % 2 == 0 and keys > 0
local reply = {over and 2 or check and 1 or 0, now}
if over or check then
  for _, key in ipairs(redis.call('ZRANDMEMBER', index, sample)) do
    reply[#reply + 1] = key
  end
end
return reply
