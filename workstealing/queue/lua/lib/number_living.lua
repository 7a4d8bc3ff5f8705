-- Return how many workers live. A process that runs brief tasks in a spare moment has a lease in
-- `workers` as long as it has any, and is no member: nobody can rely on it.
local function number_living(since)
  --- uses: workers, members
  local living, most = redis.call('ZCOUNT', workers, since, '+inf'), 1000
  -- Each member has a lease, so there is nobody else.
  if redis.call('ZCARD', workers) == redis.call('HLEN', members) then return living end
  local names = redis.call('ZRANGE', workers, since, '+inf', 'BYSCORE', 'LIMIT', 0, most)
  if #names == 0 then return 0 end
  for _, member in ipairs(redis.call('HMGET', members, unpack(names))) do
    if not member then living = living - 1 end
  end
  return living
end
