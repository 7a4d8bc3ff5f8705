--- needs: lines
-- Let lines have their turn that wait for room in a limit.
local unblocked = 0
local function number_unblocked() return unblocked end

local function unblock_member(member, limit_key_length)
  --- uses: blocked, placed
  local turn_at = limit_key_length + 2
  local line = string.sub(member, turn_at + 21)
  redis.call('ZREM', blocked, member)
  if not is_line(line) then return end
  redis.call('HSET', placed, line, '')
  make_ready({line}, finite_turn(string.sub(member, turn_at, turn_at + 19)))
  unblocked = unblocked + 1
end

-- Unblock the line that has waited longest for a limit key. If it leaves something of the
-- limit, lib/take_turns unblocks the next one.
local function unblock(limit_key)
  --- uses: blocked
  local first = first_of(blocked, limit_key, 1)[1]
  if first then unblock_member(first, #limit_key) end
end

-- The first lines that wait for any key of a limit.
local function blocked_by(name, most)
  --- uses: blocked
  local waiting = first_of(blocked, name, most)
  if #waiting > 0 then return waiting end
  return redis.call('ZRANGE', blocked, '[' .. name .. '=', '(' .. name .. '>', 'BYLEX',
    'LIMIT', 0, most)
end

-- Unblock lines that wait for any key of a limit; tell whether some may be left.
local function unblock_limit(name, most)
  local waiting = blocked_by(name, most)
  for _, member in ipairs(waiting) do
    unblock_member(member, (string.find(member, '\0', 1, true) or #member + 1) - 1)
  end
  return #waiting > 0
end
