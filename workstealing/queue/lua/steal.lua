--- needs: history, ring
-- Give half of a victim's deque, taken from its back, to a worker that has nothing; but
-- for what the thief cannot run, where the two differ.
--
-- KEYS[1]  victim   list   its deque
-- KEYS[2]  thief    list   its deque
-- KEYS[3]  lock     hash   id -> worker#token
-- KEYS[4]  loads    zset   worker -> length of its deque
-- KEYS[5]  members  hash   worker -> incarnation|description
-- KEYS[6]  control  hash   token
-- KEYS[7]  stats    hash   counts
-- KEYS[8]  history  hash   id -> attempts:deaths:steals
-- KEYS[9]  bell     list   wake-ups for idle workers
-- KEYS[10] task     hash   id -> envelope
-- ARGV[1]  victim   str    name
-- ARGV[2]  thief    str    name
-- ARGV[3]  most     int    tasks moved at most
-- ARGV[4]  ring     int    1: the thief does not know of it, so wake somebody
--
-- Reply: number of tasks moved.

local length = redis.call('LLEN', KEYS[1])
if length == 0 then redis.call('ZREM', KEYS[4], ARGV[1]) end
-- A thief that has something is no thief; so the same call twice moves nothing twice.
if length == 0 or redis.call('LLEN', KEYS[2]) > 0 then return 0 end
local thief = redis.call('HGET', KEYS[5], ARGV[2])
if not thief then return 0 end

-- Only where old and new workers run side by side is each task looked at: what a thief
-- cannot run would at once be handed back, and stolen again, as long as it is idle.
local function abilities_of(member)
  return member and string.match(member, '"abilities": (%[.-%])')
end
local abilities, is_able = abilities_of(thief), nil
if abilities and abilities ~= abilities_of(redis.call('HGET', KEYS[5], ARGV[1])) then
  is_able = {}
  for _, ability in ipairs(cjson.decode(string.match(thief, '|(.*)$')).abilities) do
    is_able[ability] = true
  end
end
local function is_fit(envelope)
  if not is_able or not envelope then return true end
  local name, version = string.match(envelope, '^{"v":1,"name":"([^"\\]*)","version":(%d+)')
  if not name then
    local is_read, value = pcall(cjson.decode, envelope)
    -- What nobody can read, anybody can put aside.
    if not is_read or type(value) ~= 'table' or type(value.name) ~= 'string' then return true end
    name, version = value.name, tostring(value.version)
  end
  return is_able[name .. '@' .. version]
end

local taken = redis.call('RPOP', KEYS[1], math.min(math.ceil(length / 2), tonumber(ARGV[3])))
local locks = redis.call('HMGET', KEYS[3], unpack(taken))
local histories = redis.call('HMGET', KEYS[8], unpack(taken))
local envelopes = is_able and redis.call('HMGET', KEYS[10], unpack(taken)) or {}
local token
local moved, left = 0, length - #taken
for n = #taken, 1, -1 do
  local id, lock = taken[n], locks[n]
  if lock and string.sub(lock, 1, #ARGV[1] + 1) ~= ARGV[1] .. '#' then lock = nil end
  if lock and not is_fit(envelopes[n]) then
    left = redis.call('RPUSH', KEYS[1], id)
  elseif lock then
    token = token or redis.call('HINCRBY', KEYS[6], 'token', 1)
    local attempts, deaths, steals = read_history(histories[n])
    redis.call('HSET', KEYS[8], id, write_history(attempts, deaths, steals + 1))
    redis.call('HSET', KEYS[3], id, ARGV[2] .. '#' .. token)
    redis.call('RPUSH', KEYS[2], id)
    moved = moved + 1
  end
end
if left > 0 then redis.call('ZADD', KEYS[4], left, ARGV[1]) else redis.call('ZREM', KEYS[4], ARGV[1]) end
if moved > 0 then
  redis.call('ZADD', KEYS[4], moved, ARGV[2])
  redis.call('HINCRBY', KEYS[7], 'stolen', moved)
  redis.call('HINCRBY', KEYS[7], 'stolen:' .. ARGV[2], moved)
  if ARGV[4] == '1' then ring(KEYS[9], 1) end
end
return moved
