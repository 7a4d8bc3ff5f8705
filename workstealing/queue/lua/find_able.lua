--- needs: clock
-- Name a live worker that can run something: of a sample, the one that has least to do.
--
-- KEYS[1]  workers  zset   worker -> end of its lease
-- KEYS[2]  members  hash   worker -> incarnation|description
-- KEYS[3]  able     hash   name@version -> workers that can run it
-- KEYS[4]  loads    zset   worker -> length of its deque
-- ARGV[1]  ability  str    name@version
-- ARGV[2]  written  str    the same, as descriptions write it
-- ARGV[3]  but      str    a worker that is not meant
-- ARGV[4]  most     int    workers looked at, at most
--
-- Reply: its name, empty if none was found.

if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 0 then return '' end
local now, most = now_ms(), tonumber(ARGV[4])

local function best_of(size)
  local drawn = redis.call('ZRANDMEMBER', KEYS[1], size, 'WITHSCORES')
  if #drawn == 0 then return '' end
  local names, best, least = {}, '', nil
  for i = 1, #drawn, 2 do names[#names + 1] = drawn[i] end
  for n, member in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
    local name, lease = names[n], tonumber(drawn[2 * n])
    if member and name ~= ARGV[3] and lease > now and string.find(member, ARGV[2], 1, true) then
      local load = tonumber(redis.call('ZSCORE', KEYS[4], name) or 0)
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
