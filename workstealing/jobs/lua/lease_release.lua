-- Give a lease back, if it is still ours.
--
-- KEYS[1]  lease    str    token of the holder
-- ARGV[1]  token    str    ours
--
-- Reply: 1 if it was given back, 0 if it was not ours any more.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
