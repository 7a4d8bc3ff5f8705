-- Move one entry to the dead-letter stream, unless it is settled already.
--
-- KEYS[1]  stream     stream
-- KEYS[2]  dead       stream  of what was given up
-- ARGV[1]  group      str
-- ARGV[2]  id         str     of the entry
-- ARGV[3]  deliveries int     how often it was delivered
-- ARGV[4]  most       int     about how many dead letters to keep
-- ARGV[…]  fields     str     field, value, field, value, …
--
-- Reply: 1 if it was moved, 0 if it was settled already.

if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
-- The letter comes before the acknowledgement: if it is refused, nothing is lost.
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'ws-origin', ARGV[2],
  'ws-group', ARGV[1], 'ws-deliveries', ARGV[3], unpack(ARGV, 5))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
