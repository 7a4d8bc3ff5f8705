--- needs: inboxes, ring
-- Put a dead letter back into its inbox, with a clean slate; or drop it.
--
-- KEYS[1]  dead     zset   id -> when it was given up
-- KEYS[2]  task     hash   id -> envelope
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  history  hash   id -> attempts:deaths:steals
-- KEYS[5]  inbox0   list   urgent
-- KEYS[6]  inbox1   list   normal
-- KEYS[7]  inbox2   list   when there is nothing else
-- KEYS[8]  lock     hash   id -> worker#token
-- KEYS[9]  bell     list   wake-ups for idle workers
-- ARGV[1]  id       str
-- ARGV[2]  drop     int    1: forget it for good
--
-- Reply: 1 if it was a dead letter, else 0.

if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
if ARGV[2] == '1' then
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  give_back({KEYS[5], KEYS[6], KEYS[7]}, KEYS[2], KEYS[8], ARGV[1])
  ring(KEYS[9], 1)
end
return 1
