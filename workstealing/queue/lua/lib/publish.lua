-- Publish an outcome to those who wait for it, each on a channel of its own.
local function publish(id, outcome)
  --- uses: awaited
  local channels = redis.call('HGET', awaited, id)
  if channels then
    for channel in string.gmatch(channels, '%S+') do
      redis.call('PUBLISH', channel, id .. ' ' .. outcome)
    end
    redis.call('HDEL', awaited, id)
  end
end
