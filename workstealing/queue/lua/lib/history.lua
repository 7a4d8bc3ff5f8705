-- What befell a task, kept only for those that something befell: attempts that failed,
-- workers that died running it, thieves that took it.
local function read_history(text)
  local attempts, deaths, steals = string.match(text or '', '^(%d+):(%d+):(%d+)$')
  return tonumber(attempts or 0), tonumber(deaths or 0), tonumber(steals or 0)
end

local function write_history(attempts, deaths, steals)
  return attempts .. ':' .. deaths .. ':' .. steals
end
