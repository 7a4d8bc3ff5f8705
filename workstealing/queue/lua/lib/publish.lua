-- Publish an outcome to its waiters. Mostly nobody waits for anything: once the first of
-- several has no waiter, one look at the whole hash spares a look for each of the others.
local is_first, is_anything_awaited = true, nil
local function publish(id, outcome)
  --- uses: awaited
  if is_anything_awaited == nil and not is_first then
    is_anything_awaited = redis.call('EXISTS', awaited) == 1
  end
  is_first = false
  local channels = is_anything_awaited ~= false and redis.call('HGET', awaited, id)
  if channels then
    for channel in string.gmatch(channels, '%S+') do
      redis.call('PUBLISH', channel, id .. ' ' .. outcome)
    end
    redis.call('HDEL', awaited, id)
  end
end
