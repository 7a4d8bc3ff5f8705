--- needs: clock, membership, cancellations
-- Renew a worker's lease while its tasks run, and name those that are cancelled.
--
-- KEY workers     zset  worker -> end of its lease
-- KEY members     hash  worker -> incarnation|description
-- KEY running     hash  id -> begun at; of this worker
-- KEY cancelling  set   ids whose workers are asked to stop
-- ARG worker       str
-- ARG incarnation  str
-- ARG lease_ms     int
--
-- Reply: 'lost', or 'ok' and the ids that are to stop.

if not is_member() then return {'lost'} end
redis.call('ZADD', workers, now_ms() + lease_ms, worker)
local reply = {'ok'}
if redis.call('EXISTS', cancelling) == 1 then append_cancelled(reply) end
return reply
