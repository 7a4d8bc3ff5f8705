-- Strike a worker off, with all that is counted for it.
local function dismiss(worker, workers, members, loads, able, stats)
  local member = redis.call('HGET', members, worker)
  if member then
    local description = cjson.decode(string.match(member, '|(.*)$'))
    for _, ability in ipairs(description.abilities) do
      if redis.call('HINCRBY', able, ability, -1) <= 0 then redis.call('HDEL', able, ability) end
    end
  end
  redis.call('HDEL', members, worker)
  redis.call('ZREM', workers, worker)
  redis.call('ZREM', loads, worker)
  redis.call('HDEL', stats, 'stolen:' .. worker)
end
