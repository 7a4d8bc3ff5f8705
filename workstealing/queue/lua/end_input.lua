-- Say that no more input comes, or that it does again.
--
-- KEY control  hash  closed
-- ARG ended  flag  no more input comes
--
-- Reply: 1.

if ended then redis.call('HSET', control, 'closed', 1) else redis.call('HDEL', control, 'closed') end
return 1
