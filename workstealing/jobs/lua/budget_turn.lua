--- needs: despite_full, stamp, usage
-- Say whether the namespace is over its budget, and draw keys to look at.
--
-- KEYS[1]  index      zset   key -> when it was last entered, ms
-- KEYS[2]  sizes      hash   key -> bytes when last measured
-- KEYS[3]  state      hash   stamp, turn, bytes
-- KEYS[4]  lease      str    token of the recruit that evicts
-- ARGV[1]  most_keys  int    budget; -1: none
-- ARGV[2]  most_bytes int    budget; -1: none
-- ARGV[3]  sample     int    upper bound on keys drawn
-- ARGV[4]  token      str    ours
-- ARGV[5]  lease      int    ms
--
-- Reply: verdict (2 over budget, 1 check the index, 0 scan, -1 another recruit
-- evicts), time, then the keys drawn.

despite_full(KEYS[3])
local keys, bytes = usage(KEYS[1], KEYS[2], KEYS[3])
local most_keys, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local over = most_keys >= 0 and keys > most_keys
  or most_bytes >= 0 and bytes > most_bytes
if over then
  local holder = redis.call('GET', KEYS[4])
  if holder and holder ~= ARGV[4] then return {-1, 0} end
  redis.call('SET', KEYS[4], ARGV[4], 'PX', ARGV[5])
end
local now = stamp(KEYS[3], 1)
local check = redis.call('HINCRBY', KEYS[3], 'turn', 1) % 2 == 0 and keys > 0
local reply = {over and 2 or check and 1 or 0, now}
if over or check then
  for _, key in ipairs(redis.call('ZRANDMEMBER', KEYS[1], ARGV[3])) do
    reply[#reply + 1] = key
  end
end
return reply
