-- Name the first or the last ids of a sorted set.
--
-- KEY ranks  zset  id -> ms
-- ARG most    int   ids named at most
-- ARG latest  flag  the highest first
-- ARG first   int   ids that are passed over
--
-- Reply: id, ms, …

if latest then return redis.call('ZRANGE', ranks, first, first + most - 1, 'REV', 'WITHSCORES') end
return redis.call('ZRANGE', ranks, first, first + most - 1, 'WITHSCORES')
