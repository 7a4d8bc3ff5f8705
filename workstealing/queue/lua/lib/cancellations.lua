-- The running tasks of a worker that it is asked to stop, at the end of a list.
local function append_cancelled(list)
  --- uses: running, cancelling
  for _, id in ipairs(redis.call('HKEYS', running)) do
    if redis.call('SISMEMBER', cancelling, id) == 1 then list[#list + 1] = id end
  end
end
