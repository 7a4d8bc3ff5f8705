--- needs: clock
-- Read the ledger of side work.
--
-- KEYS stretches  hash  kind, host and name, tabs between them -> numbers, then a text on a line
--                       of its own
--
-- Reply: now; then for each stretch a list of field, value, …

local reply = {now_ms()}
for n = stretches_at, #KEYS do reply[#reply + 1] = redis.call('HGETALL', KEYS[n]) end
return reply
