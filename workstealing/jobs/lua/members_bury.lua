--- needs: clock
-- Remove silent members, and claim the telling of their deaths.
--
-- A claim that ran out is of a recruit that died before it told: it is claimed again.
--
-- KEYS[1]  members  zset   member -> when its silence is too long, ms
-- KEYS[2]  untold   zset   dead member -> when the claim to tell it runs out, ms
-- ARGV[1]  most     int    upper bound on members
-- ARGV[2]  claim    int    ms that the caller has for telling; 0: it tells nobody
--
-- Reply: end of the claim in ms, then the members to tell of.

local now = now_ms()
local most = tonumber(ARGV[1])
local tells = ARGV[2] ~= '0'
local claim = now + tonumber(ARGV[2])
local dead = {}
if tells then
  dead = redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
end
local silent = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, most - #dead)
for _, member in ipairs(silent) do
  redis.call('ZREM', KEYS[1], member)
  dead[#dead + 1] = member
end
if tells then
  for _, member in ipairs(dead) do
    redis.call('ZADD', KEYS[2], claim, member)
  end
end
local reply = {claim}
for _, member in ipairs(dead) do reply[#reply + 1] = member end
return reply
