--- needs: clock
-- Renew a worker's lease while its tasks run, and tell which of them are cancelled.
--
-- KEYS[1]  workers  zset   worker -> end of its lease
-- KEYS[2]  members  hash   worker -> incarnation|description
-- KEYS[3]  running  hash   id -> begun at; of this worker
-- KEYS[4]  cancels  set    ids whose workers are asked to stop
-- ARGV[1]  worker       str
-- ARGV[2]  incarnation  str
-- ARGV[3]  lease        int   ms
--
-- Reply: 'lost', or 'ok' and the ids that are to stop.

local member = redis.call('HGET', KEYS[2], ARGV[1])
if not member or string.sub(member, 1, #ARGV[2] + 1) ~= ARGV[2] .. '|' then return {'lost'} end
redis.call('ZADD', KEYS[1], now_ms() + tonumber(ARGV[3]), ARGV[1])
local reply = {'ok'}
if redis.call('EXISTS', KEYS[4]) == 1 then
  for _, id in ipairs(redis.call('HKEYS', KEYS[3])) do
    if redis.call('SISMEMBER', KEYS[4], id) == 1 then reply[#reply + 1] = id end
  end
end
return reply
