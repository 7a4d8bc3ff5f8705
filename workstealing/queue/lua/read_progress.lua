-- Read how far some tasks say that they are.
--
-- KEYS notes  hash  of: which submission; and what was noted
--
-- Reply: for each, which submission it is of and what it says; an empty string for each that is
-- missing.

local reply = {}
for n = notes_at, #KEYS do
  local found = redis.call('HMGET', KEYS[n], 'of', 'progress')
  reply[#reply + 1] = found[1] or ''
  reply[#reply + 1] = found[2] or ''
end
return reply
