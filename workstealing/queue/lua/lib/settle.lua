--- needs: unusual, caller, history, give_back, expire_outcomes, publish
-- Settle reports: ARGV[first] to ARGV[last], five values each; ids that were refused are
-- put at the end of a list. A report counts only if the task is still locked to this
-- worker by the token that it names; to report again what was accepted changes nothing.

-- A task that comes back: after a while, or at once to the front of its inbox.
local function return_task(id, verdict, delay_ms)
  --- uses: lock, later, history
  is_odd = true
  if verdict == 'retry' then
    local attempts, deaths, steals = read_history(redis.call('HGET', history, id))
    redis.call('HSET', history, id, write_history(attempts + 1, deaths, steals))
  end
  if delay_ms > 0 then
    redis.call('ZADD', later, now + delay_ms, id)
    redis.call('HDEL', lock, id)
  else
    give_back(id)
  end
end

local function settle(first, last, refused)
  --- uses: task, lock, done, outbox, dead, running, stats, history, cancelling, awaited
  --- uses: retention_ms, most_outcomes
  local ids = {}
  for i = first, last, 5 do ids[#ids + 1] = ARGV[i] end
  local holders = redis.call('HMGET', lock, unpack(ids))
  local freed, ended, outcomes, expiries, given_up, over = {}, {}, {}, {}, {}, {}
  local is_settled = {}
  local count = {done = 0, cancelled = 0, failed = 0, dead = 0, forged = 0, retry = 0, back = 0}
  local is_awaited = redis.call('EXISTS', awaited) == 1
  -- Numbers are written out anew for each command that takes them; these serve many.
  local ended_at = string.format('%d', now)
  local expires_at = string.format('%d', now + retention_ms)
  for n, id in ipairs(ids) do
    local i = first + 5 * (n - 1)
    local verdict, outcome = ARGV[i + 2], ARGV[i + 3]
    if is_settled[id] or holders[n] ~= mine .. ARGV[i + 1] then
      -- A report that was accepted before, whose reply got lost, is no news.
      if redis.call('HGET', done, id) ~= outcome then refused[#refused + 1] = id end
    else
      is_settled[id] = true
      freed[#freed + 1] = id
      count[verdict] = count[verdict] + 1
      if verdict == 'forged' or verdict == 'failed' then
        verdict = 'dead'
        count.dead = count.dead + 1
      end
      if verdict == 'done' or verdict == 'cancelled' or verdict == 'dead' then
        over[#over + 1] = id
        if verdict == 'dead' then
          given_up[#given_up + 1] = ended_at
          given_up[#given_up + 1] = id
        else
          ended[#ended + 1] = id
          if retention_ms > 0 then
            expiries[#expiries + 1] = expires_at
            expiries[#expiries + 1] = id
          end
        end
        -- A dead letter keeps its reason for as long as it is kept itself.
        if retention_ms > 0 or verdict == 'dead' then
          outcomes[#outcomes + 1] = id
          outcomes[#outcomes + 1] = outcome
        end
        if is_awaited then publish(id, outcome) end
      else
        return_task(id, verdict, tonumber(ARGV[i + 4]))
      end
    end
  end
  if #freed == 0 then return end
  redis.call('HDEL', lock, unpack(freed))
  redis.call('HDEL', running, unpack(freed))
  if #ended > 0 then
    redis.call('HDEL', task, unpack(ended))
    if is_there(history) then redis.call('HDEL', history, unpack(ended)) end
  end
  if #given_up > 0 then
    is_odd = true
    redis.call('ZADD', dead, unpack(given_up))
  end
  -- What comes back stays cancelled: the worker that takes it next learns of it.
  if #over > 0 and is_there(cancelling) then redis.call('SREM', cancelling, unpack(over)) end
  if #outcomes > 0 then redis.call('HSET', done, unpack(outcomes)) end
  if #expiries > 0 then
    redis.call('ZADD', outbox, unpack(expiries))
    expire_outcomes(now, most_outcomes, math.min(#expiries, 1000))
  end
  for verdict, number in pairs(count) do
    if number > 0 then redis.call('HINCRBY', stats, verdict, number) end
  end
end
