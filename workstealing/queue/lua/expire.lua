--- needs: clock, expire
-- Forget outcomes and dead letters whose time is over, or that are too many.
--
-- KEYS[1]  done    hash   id -> outcome
-- KEYS[2]  outbox  zset   id -> when its outcome expires
-- KEYS[3]  dead    zset   id -> when it was given up
-- KEYS[4]  task    hash   id -> envelope
-- KEYS[5]  history hash   id -> attempts:deaths:steals
-- ARGV[1]  kept       int    outcomes that are kept at most
-- ARGV[2]  dead_ms    int    ms that a dead letter is kept
-- ARGV[3]  dead_kept  int    dead letters that are kept at most
-- ARGV[4]  most       int    forgotten at most, of each
--
-- Reply: number of outcomes and dead letters forgotten.

local now, most = now_ms(), tonumber(ARGV[4])
local forgotten = expire(KEYS[1], KEYS[2], now, tonumber(ARGV[1]), most)
local old = redis.call('ZRANGE', KEYS[3], '-inf', now - tonumber(ARGV[2]), 'BYSCORE', 'LIMIT', 0, most)
if #old == 0 then
  local excess = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[3])
  if excess > 0 then old = redis.call('ZRANGE', KEYS[3], 0, math.min(excess, most) - 1) end
end
if #old > 0 then
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('HDEL', KEYS[4], unpack(old))
  redis.call('HDEL', KEYS[5], unpack(old))
  redis.call('ZREM', KEYS[3], unpack(old))
end
return forgotten + #old
