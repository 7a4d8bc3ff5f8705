--- needs: clock, enqueue, publish, wake_workers, wake_for_delayed, envelope_name
--- needs: outcome_times
-- A task that something waits for is in followers: c and the id of the step after it in a
-- chain; or g and the id of its group, which is also that of the step after the group, if there
-- is one. Once it has ended and was counted, the mark is n and the id of the step that needs its
-- outcome. So nothing is counted twice, not even a dead letter that is replayed.
-- A step that waits is in steps, and nowhere else.
local shortest_ms = 60000 -- that a group is remembered after its end

local function read_group(text)
  local left, total, failed, kept_ms, calls =
    string.match(text or '', '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
  return tonumber(left), tonumber(total), tonumber(failed), tonumber(kept_ms), tonumber(calls)
end

local function write_group(left, total, failed, kept_ms, calls)
  return string.format('%d:%d:%d:%d:%d', left, total, failed, kept_ms, calls)
end

-- Put a step into the queue, as an ordinary task.
local function begin_step(id, text)
  --- uses: steps
  local priority, delay_ms, due, _, line = string.match(text, '^(%d):(%d+):(%d+):(%d+):(.*)$')
  local now = now_ms()
  due = tonumber(due)
  if tonumber(delay_ms) > 0 then due = now + tonumber(delay_ms) end
  if due <= now then due = 0 end
  redis.call('HDEL', steps, id)
  enqueue(id, tonumber(priority), line, due)
  if due == 0 then wake_workers(1) else wake_for_delayed(1, due) end
end

-- End a step that will not be begun, and all that wait for it in turn.
local function skip_steps(id, reason)
  --- uses: steps, task, done, outcome_times, followers, stats
  while id do
    local text = redis.call('HGET', steps, id)
    if not text then return end
    local mark = redis.call('HGET', followers, id)
    local kept_ms = tonumber(string.match(text, '^%d:%d+:%d+:(%d+):'))
    local name, version = envelope_name(redis.call('HGET', task, id) or '')
    local what = name and ',"task":' .. cjson.encode(name .. '@' .. version) or ''
    local outcome = '{"state":"cancelled","reason":' .. cjson.encode(reason) .. what
      .. ',"ended":' .. string.format('%d', now_ms()) .. '}'
    redis.call('HDEL', steps, id)
    redis.call('HDEL', task, id)
    redis.call('HDEL', followers, id)
    if kept_ms > 0 then
      redis.call('HSET', done, id, outcome)
      redis.call('RPUSH', outcome_times, outcome_time(id, now_ms() + kept_ms))
    end
    redis.call('HINCRBY', stats, 'cancelled', 1)
    publish(id, outcome)
    id = mark and string.sub(mark, 1, 1) == 'c' and string.sub(mark, 2)
  end
end

-- Say why the steps after a task are not begun.
local function why_skipped(id, outcome)
  local is_read, value = pcall(cjson.decode, outcome)
  if not is_read or type(value) ~= 'table' then value = {} end
  local what, why = value.state or 'dead', value.reason
  if type(value.error) == 'table' then
    why = tostring(value.error.type) .. ': ' .. tostring(value.error.message or '')
  end
  local verbs = {failed = 'failed', cancelled = 'was cancelled', expired = 'expired'}
  return 'the earlier step ' .. id .. ' ' .. (verbs[what] or 'was given up')
    .. (why and ': ' .. tostring(why) or '')
end

-- Count tasks that have ended for good, each once, and begin the steps that waited for them.
-- failures has the outcomes of those that are not done, by id.
local function hand_over(ids, failures)
  --- uses: followers, steps, groups, group_times
  for n, mark in ipairs(redis.call('HMGET', followers, unpack(ids))) do
    local kind = mark and string.sub(mark, 1, 1)
    if kind == 'c' or kind == 'g' then
      local id, after = ids[n], string.sub(mark, 2)
      local step, failure = redis.call('HGET', steps, after), failures[id]
      if step then
        redis.call('HSET', followers, id, 'n' .. after)
      else
        redis.call('HDEL', followers, id)
      end
      local is_next = true
      if kind == 'g' then
        local left, total, failed, kept_ms, calls =
          read_group(redis.call('HGET', groups, after))
        if left then
          left, failed = left - 1, failed + (failure and 1 or 0)
          redis.call('HSET', groups, after, write_group(left, total, failed, kept_ms, calls))
          if left == 0 then
            redis.call('ZADD', group_times, now_ms() + math.max(kept_ms, shortest_ms), after)
          end
        end
        -- A group ends although a member has failed.
        is_next, failure = left == 0, nil
      end
      if step and is_next then
        if failure then
          skip_steps(after, why_skipped(id, failure))
        else
          begin_step(after, step)
        end
      end
    end
  end
end
