--- needs: lines
-- A task that was taken from its line holds a permit of each limit on how many run, until it
-- ends or waits again. Permits come back here, once for each task, whoever gives them back.
local unblocked = 0 -- lines that were

-- Let the line have its turn that has waited longest for a limit. If it leaves something of
-- the limit, lib/take_turns unblocks the next one.
local function unblock(limit_key)
  --- uses: blocked, placed
  local first = first_of(blocked, limit_key, 1)[1]
  if not first then return end
  local turn_at = #limit_key + 2
  local turn, line = string.sub(first, turn_at, turn_at + 19), string.sub(first, turn_at + 21)
  redis.call('ZREM', blocked, first)
  redis.call('HSET', placed, line, '')
  make_ready(line, tonumber(turn))
  unblocked = unblocked + 1
end

local function return_permits(ids)
  --- uses: permits, permit_holders
  for n, keys in ipairs(redis.call('HMGET', permit_holders, unpack(ids))) do
    -- The same id may be named twice.
    if keys and redis.call('HDEL', permit_holders, ids[n]) == 1 then
      for key in string.gmatch(keys, '[^\t]+') do
        if redis.call('HINCRBY', permits, key, -1) <= 0 then redis.call('HDEL', permits, key) end
        unblock(key)
      end
    end
  end
end

-- Unblock lines whose limit has room again, as time has passed.
local function renew_rates(now, most)
  --- uses: refills
  local due = redis.call('ZRANGE', refills, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(due) do
    redis.call('ZREM', refills, key)
    unblock(key)
  end
  return #due
end
