-- Remove ids that the table lacks, and send those that it has to the back.
--
-- KEYS[1]  ids      zset   id -> when it was last known to be in the table, ms
-- KEYS[2]  state    hash   stamp, turn, cursor
-- ARGV[1]  asked    int    the time before the table was asked, ms
-- ARGV[2]  most     int    how many ids would be a full slice
-- ARGV[3]  gone     int    how many of the ids are gone; they come first
-- ARGV[…]  ids      str    the gone, then the others
--
-- Reply: number of ids removed, then 1 if another slice has work, else 0.

local asked = tonumber(ARGV[1])
local gone = tonumber(ARGV[3])
local removed = 0
for i = 4, #ARGV do
  local known = redis.call('ZSCORE', KEYS[1], ARGV[i])
  -- An id added since the table was asked may be in it by now.
  if known and tonumber(known) < asked then
    if i - 3 <= gone then
      removed = removed + redis.call('ZREM', KEYS[1], ARGV[i])
    else
      redis.call('ZADD', KEYS[1], asked, ARGV[i])
    end
  end
end
local removing = removed > 0 and #ARGV - 3 >= tonumber(ARGV[2])
redis.call('HSET', KEYS[2], 'removing', removing and 1 or 0)
local adding = redis.call('HGET', KEYS[2], 'adding') == '1'
return {removed, (adding or removing) and 1 or 0}
