--- needs: clock
-- Name a live worker with an ability: the least loaded one of a sample.
--
-- KEY workers    zset  worker -> end of its lease
-- KEY members    hash  worker -> incarnation|description
-- KEY abilities  hash  name@version -> workers that can run it
-- KEY loads      zset  worker -> length of its deque
-- ARG ability  str  name@version
-- ARG written  str  the ability as JSON, as descriptions have it
-- ARG but      str  a worker to leave out
-- ARG most     int  workers looked at, at most
--
-- Reply: its name, empty if none was found.

if redis.call('HEXISTS', abilities, ability) == 0 then return '' end
local now = now_ms()

local function best_of(size)
  local drawn = redis.call('ZRANDMEMBER', workers, size, 'WITHSCORES')
  if #drawn == 0 then return '' end
  local names, best, least = {}, '', nil
  for i = 1, #drawn, 2 do names[#names + 1] = drawn[i] end
  for n, member in ipairs(redis.call('HMGET', members, unpack(names))) do
    local name, lease_end = names[n], tonumber(drawn[2 * n])
    if member and name ~= but and lease_end > now and string.find(member, written, 1, true) then
      local load = tonumber(redis.call('ZSCORE', loads, name) or 0)
      if not least or load < least then
        best, least = name, load
      end
    end
  end
  return best
end

-- Mostly a few will do; descriptions are long.
local best = best_of(math.min(10, most))
return best ~= '' and best or best_of(most)
