--- needs: caller, abilities, orphans
-- Take a worker on. If another incarnation has its name, that one is taken for dead:
-- what it was running goes back to the inboxes, or is given up if its workers died too
-- often or if it must not be run twice; what waits in the deque is inherited.
--
-- KEY inboxes[3]  list  urgent, normal, when there is nothing else
-- KEY task        hash  id -> envelope
-- KEY lock        hash  id -> worker#token
-- KEY workers     zset  worker -> end of its lease
-- KEY members     hash  worker -> incarnation|description
-- KEY running     hash  id -> begun at, after ! if it must not come back; of this worker
-- KEY history     hash  id -> attempts:deaths:steals
-- KEY abilities   hash  name@version -> workers that can run it
-- KEY done        hash  id -> outcome
-- KEY dead        zset  id -> when it was given up
-- KEY cancelling  set   ids whose workers are asked to stop
-- KEY stats       hash  counts
-- KEY awaited     hash  id -> channels of those who wait for its outcome
-- ARG worker       str
-- ARG incarnation  str
-- ARG lease_ms     int
-- ARG description  str  JSON, with its abilities as a list
-- ARG most_deaths  int  that a task may see
-- ARG exhausted    str  outcome of a task that saw more
-- ARG unknown      str  outcome of a task that must not be run twice
--
-- Reply: 1.

local member = incarnation .. '|' .. description
local former = redis.call('HGET', members, worker)
redis.call('ZADD', workers, now + lease_ms, worker)
if former == member then return 1 end
if former then
  count_abilities(former, -1)
  return_running(math.huge, unknown, most_deaths, exhausted)
end
count_abilities(member, 1)
redis.call('HSET', members, worker, member)
return 1
