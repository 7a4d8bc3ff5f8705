--- needs: outcome_times
-- An outcome that is forgotten before its time leaves its id in outcome_times, and purged counts
-- what is left over: to remove it from the middle of a long list would take long. The id may
-- come again and end again; those that are left over stand before the one that counts.

-- Return those that are not left over among the first ids, which are no longer in their list.
local function without_purged(ids)
  --- uses: purged
  local kept, number, is_met, gone = {}, {}, {}, {}
  for n, text in ipairs(redis.call('HMGET', purged, unpack(ids))) do
    local id = ids[n]
    if not number[id] then number[id] = tonumber(text or 0) end
    if number[id] > 0 then
      number[id] = number[id] - 1
      is_met[id] = true
    else
      kept[#kept + 1] = id
    end
  end
  for id in pairs(is_met) do
    if number[id] > 0 then
      redis.call('HSET', purged, id, number[id])
    else
      gone[#gone + 1] = id
    end
  end
  if #gone > 0 then redis.call('HDEL', purged, unpack(gone)) end
  return kept
end
