--- needs: lines
-- Remove from turns what others have written and is no line; give lines a turn that have none.
local function repair_turns(priority, found)
  --- uses: turns
  local turns_key = turns[priority + 1]
  for n = 1, #found, 2 do
    local line = found[n]
    if not is_line(line) or string.sub(line, 1, 1) ~= tostring(priority) then
      redis.call('ZREM', turns_key, line)
    elseif not finite_turn(found[n + 1]) then
      redis.call('ZADD', turns_key, turn_text(current_turn(priority)), line)
    end
  end
end
