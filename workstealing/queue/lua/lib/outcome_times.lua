-- outcome_times says of each outcome in done, but those of dead letters, when it expires: its id,
-- a space and the time, in the order in which tasks ended. A list takes a fifth of the memory of
-- a sorted set. It is read from its front only, so where retention differs from process to
-- process, or was changed, an outcome is kept until those that ended before it may go.
local function outcome_time(id, ms) return id .. ' ' .. string.format('%d', ms) end

local function read_outcome_time(text)
  local id, ms = string.match(text or '', '^(.*) (%d+)$')
  -- What others have written expires at once.
  return id or text, tonumber(ms) or text and 0
end
