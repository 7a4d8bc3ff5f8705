-- Take the turn of a job for all processes, unless somebody has it.
--
-- KEY turn  str  present while somebody has had it
-- ARG ms    int  that it lasts
--
-- Reply: 0 if it is ours, else ms until it is free.

if redis.call('SET', turn, '1', 'NX', 'PX', ms) then return 0 end
local left = redis.call('PTTL', turn)
-- Somebody has removed its expiry: it would never be free again.
if left < 0 then redis.call('PEXPIRE', turn, ms) end
return left > 0 and left or ms
