-- Name the first or the last ids of a sorted set.
--
-- KEYS[1]  ranks   zset   id -> ms
-- ARGV[1]  most    int    ids named at most
-- ARGV[2]  latest  int    1: the highest first
--
-- Reply: id, ms, …

if ARGV[2] == '1' then
  return redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'REV', 'WITHSCORES')
end
return redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES')
