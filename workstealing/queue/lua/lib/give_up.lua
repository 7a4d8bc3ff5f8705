--- needs: caller, publish, uniques
-- Make dead letters of tasks: id, outcome, id, outcome, … A dead letter keeps its envelope,
-- its outcome and its history until it is replayed, dropped or expired.
local function give_up(letters)
  --- uses: lock, cancelling, done, dead, stats
  local ids, given_up_at = {}, {}
  for n = 1, #letters, 2 do
    local id, outcome = letters[n], letters[n + 1]
    ids[#ids + 1] = id
    given_up_at[n], given_up_at[n + 1] = string.format('%d', now), id
    publish(id, outcome)
  end
  redis.call('HDEL', lock, unpack(ids))
  redis.call('SREM', cancelling, unpack(ids))
  free_uniques(ids, 'dead')
  redis.call('HSET', done, unpack(letters))
  redis.call('ZADD', dead, unpack(given_up_at))
  redis.call('HINCRBY', stats, 'dead', #ids)
end
