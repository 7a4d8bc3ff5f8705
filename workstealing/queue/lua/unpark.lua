--- needs: inboxes, ring
-- Give parked tasks back to their inboxes if a worker can run them now.
--
-- KEYS[1]  parked    list   ids that need this ability
-- KEYS[2]  parkings  set    abilities that something is parked for
-- KEYS[3]  needs     hash   id -> ability it waits for
-- KEYS[4]  able      hash   name@version -> workers that can run it
-- KEYS[5]  inbox0    list   urgent
-- KEYS[6]  inbox1    list   normal
-- KEYS[7]  inbox2    list   when there is nothing else
-- KEYS[8]  task      hash   id -> envelope
-- KEYS[9]  lock      hash   id -> worker#token
-- KEYS[10] bell      list   wake-ups for idle workers
-- ARGV[1]  ability   str    name@version
-- ARGV[2]  most      int    tasks given back at most
--
-- Reply: number of tasks given back.

if redis.call('LLEN', KEYS[1]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
  return 0
end
if redis.call('HEXISTS', KEYS[4], ARGV[1]) == 0 then return 0 end
local ids = redis.call('RPOP', KEYS[1], ARGV[2])
local returned = 0
for _, id in ipairs(ids) do
  -- It may have been cancelled meanwhile, and come again to wait for something else.
  if redis.call('HGET', KEYS[3], id) == ARGV[1] then
    redis.call('HDEL', KEYS[3], id)
    give_back({KEYS[5], KEYS[6], KEYS[7]}, KEYS[8], KEYS[9], id)
    returned = returned + 1
  end
end
if returned > 0 then ring(KEYS[10], returned) end
if redis.call('LLEN', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
return returned
