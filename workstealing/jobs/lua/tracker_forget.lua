-- Remove ids that the table lacks, and send those that it has to the back.
--
-- KEY ids    zset  id -> when it was last known to be in the table, ms
-- KEY state  hash  stamp, turn, cursor
-- ARG asked       int  the time before the table was asked, ms
-- ARG most        int  how many ids would be a full slice
-- ARG gone        int  how many of the ids are gone; they come first
-- ARGS asked_ids  str  the gone, then the others
--
-- Reply: number of ids removed, then 1 if another slice has work, else 0.

local removed = 0
for i = asked_ids_at, #ARGV do
  local known = redis.call('ZSCORE', ids, ARGV[i])
  -- An id added since the table was asked may be in it by now.
  if known and tonumber(known) < asked then
    if i < asked_ids_at + gone then
      removed = removed + redis.call('ZREM', ids, ARGV[i])
    else
      redis.call('ZADD', ids, asked, ARGV[i])
    end
  end
end
local removing = removed > 0 and #ARGV - asked_ids_at + 1 >= most
redis.call('HSET', state, 'removing', removing and 1 or 0)
local adding = redis.call('HGET', state, 'adding') == '1'
return {removed, (adding or removing) and 1 or 0}
