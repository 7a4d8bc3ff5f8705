--- needs: clock, first_write
-- Renew the lease of a process in which a brief task takes long, while it has any task.
--
-- KEY workers     zset  worker -> end of its lease
-- KEY running     hash  id -> begun at; of this worker
-- KEY cancelling  set   ids whose workers are asked to stop
-- ARG worker    str
-- ARG lease_ms  int
--
-- Reply: the tasks that are still its own; those of them that it is asked to stop.

local held, to_stop = redis.call('HKEYS', running), {}
-- Without a lease, it was taken for dead, and what is left here is on its way to others.
if #held == 0 or not redis.call('ZSCORE', workers, worker) then return {{}, {}} end
first_write('ZADD', workers, now_ms() + lease_ms, worker)
for _, id in ipairs(held) do
  if redis.call('SISMEMBER', cancelling, id) == 1 then to_stop[#to_stop + 1] = id end
end
return {held, to_stop}
