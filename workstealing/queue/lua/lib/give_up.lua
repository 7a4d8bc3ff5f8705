--- needs: caller, publish, uniques, hand_over
-- Make dead letters of tasks: id, outcome, id, outcome, … A dead letter keeps its envelope,
-- its outcome and its history until it is replayed, dropped or expired.
local function give_up(letters)
  --- uses: lock, cancelling, done, dead, stats, followers
  local ids, given_up_at, outcome_of = {}, {}, {}
  for n = 1, #letters, 2 do
    local id, outcome = letters[n], letters[n + 1]
    ids[#ids + 1], outcome_of[id] = id, outcome
    given_up_at[n], given_up_at[n + 1] = string.format('%d', now), id
    publish(id, outcome)
  end
  redis.call('HDEL', lock, unpack(ids))
  redis.call('SREM', cancelling, unpack(ids))
  free_uniques(ids, 'dead')
  redis.call('HSET', done, unpack(letters))
  redis.call('ZADD', dead, unpack(given_up_at))
  redis.call('HINCRBY', stats, 'dead', #ids)
  if redis.call('EXISTS', followers) == 1 then hand_over(ids, outcome_of) end
end
