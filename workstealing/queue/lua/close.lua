-- Say that no more input comes, or that it does again.
--
-- KEYS[1]  control  hash   closed
-- ARGV[1]  closed   int    1 or 0
--
-- Reply: 1.

if ARGV[1] == '1' then redis.call('HSET', KEYS[1], 'closed', 1) else redis.call('HDEL', KEYS[1], 'closed') end
return 1
