-- Tell of each of some tasks what a list shows. Of long texts only both ends are told.
--
-- KEYS[1]  task     hash   id -> envelope
-- KEYS[2]  lock     hash   id -> worker#token
-- KEYS[3]  done     hash   id -> outcome
-- KEYS[4]  history  hash   id -> attempts:deaths:steals
-- ARGV[1]  most     int    bytes of an envelope or outcome that are told, about
-- ARGV[…]  ids      str
--
-- Reply: for each its envelope, the length of that, lock, outcome and history; an empty
-- string for what there is not.

local most, tail = tonumber(ARGV[1]), 512
local function both_ends(text)
  if #text <= most + tail then return text end
  -- Not in the middle of a character: some clients refuse half of one.
  local head = string.gsub(string.sub(text, 1, most), '[\192-\255]?[\128-\191]*$', '')
  local rest = string.gsub(string.sub(text, -tail), '^[\128-\191]+', '')
  return head .. rest
end

local reply = {}
for i = 2, #ARGV do
  local envelope = redis.call('HGET', KEYS[1], ARGV[i]) or ''
  reply[#reply + 1] = both_ends(envelope)
  reply[#reply + 1] = #envelope
  reply[#reply + 1] = redis.call('HGET', KEYS[2], ARGV[i]) or ''
  reply[#reply + 1] = both_ends(redis.call('HGET', KEYS[3], ARGV[i]) or '')
  reply[#reply + 1] = redis.call('HGET', KEYS[4], ARGV[i]) or ''
end
return reply
