--- needs: clock
-- Read a value, and record that it was read.
--
-- KEY value  hash  value, took, expires, by, read
--
-- Reply: value, how long it took to compute, when it expires, how long that is
-- from now (all ms); nothing if there is none.

local found = redis.call('HMGET', value, 'value', 'took', 'expires', 'read')
if not found[1] then return {} end
-- A reader must not suffer when the server takes no writes.
if found[4] ~= '1' then redis.pcall('HSET', value, 'read', 1) end
return {found[1], found[2], found[3], found[3] - now_ms()}
