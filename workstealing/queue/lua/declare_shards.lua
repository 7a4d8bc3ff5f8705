--- needs rarely: first_write
-- Say how many shards a queue is to have; it is run on the first of them. The number only
-- grows: what was named before is looked for where it was by the numbers before.
--
-- KEY control  hash  shards: all numbers that there were, in their order
-- KEY task     hash  id -> envelope
-- KEY done     hash  id -> outcome
-- ARG wanted  int  shards
--
-- Reply: all numbers of shards that there were; the last is the one that counts.

local known = redis.call('HGET', control, 'shards')
local last = tonumber(string.match(known or '1', '%d+$')) or 1
if wanted <= last then return known or '1' end
-- One that has tasks already had a single shard.
if not known and redis.call('EXISTS', task, done) == 1 then known = '1' end
known = (known and known .. ' ' or '') .. string.format('%d', wanted)
first_write('HSET', control, 'shards', known)
return known
