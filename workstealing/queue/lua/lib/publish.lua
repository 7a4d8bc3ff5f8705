-- Publish an outcome to its waiters. Mostly nobody waits for anything, and one look at the
-- whole hash spares a look for each task.
local is_anything_awaited
local function publish(id, outcome)
  --- uses: awaited
  if is_anything_awaited == nil then
    is_anything_awaited = redis.call('EXISTS', awaited) == 1
  end
  local channels = is_anything_awaited and redis.call('HGET', awaited, id)
  if channels then
    for channel in string.gmatch(channels, '%S+') do
      redis.call('PUBLISH', channel, id .. ' ' .. outcome)
    end
    redis.call('HDEL', awaited, id)
  end
end
