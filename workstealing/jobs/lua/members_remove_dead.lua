--- needs: clock
-- Remove silent members, and claim the reports of their deaths.
--
-- A claim that expired is of a recruit that died before it reported: claim it again.
--
-- KEY members  zset  member -> when its silence is too long, ms
-- KEY unreported  zset  dead member -> when the claim to report it expires, ms
-- ARG most      int  upper bound on members
-- ARG claim_ms  int  that the caller has for its reports; 0: it reports nothing
--
-- Reply: end of the claim in ms, then the members to report.

local now = now_ms()
local reports, claimed_until = claim_ms > 0, now + claim_ms
local dead = {}
if reports then
  dead = redis.call('ZRANGE', unreported, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
end
local silent = redis.call('ZRANGE', members, '-inf', now, 'BYSCORE', 'LIMIT', 0, most - #dead)
for _, member in ipairs(silent) do
  redis.call('ZREM', members, member)
  dead[#dead + 1] = member
end
if reports then
  for _, member in ipairs(dead) do
    redis.call('ZADD', unreported, claimed_until, member)
  end
end
local reply = {claimed_until}
for _, member in ipairs(dead) do reply[#reply + 1] = member end
return reply
