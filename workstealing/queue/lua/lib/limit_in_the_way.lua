--- needs: limit_room
-- By which limit a line is held back now. Where the line stands does not tell: one that has its
-- turn is blocked only when a worker looks, and one that is blocked may have room since then.
local has_room_of = {}
local function has_room(limit_key, at)
  --- uses: permits
  if has_room_of[limit_key] == nil then
    local most, period = limit_numbers(limit_key)
    if period then
      has_room_of[limit_key] = refilled_at(limit_key, at) <= at
    else
      local running = most and tonumber(redis.call('HGET', permits, limit_key)) or 0
      has_room_of[limit_key] = not most or running < most
    end
  end
  return has_room_of[limit_key]
end

-- The first limit key of a line that has no room; nil if all have some.
local function limit_in_the_way(line, at)
  local limit_keys = string.match(line, '^[^\t]*\t[^\t]*\t[^\t]*\t(.+)$') or ''
  for limit_key in string.gmatch(limit_keys, '[^\t]+') do
    if not has_room(limit_key, at) then return limit_key end
  end
end
