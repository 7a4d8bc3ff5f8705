-- What befell a task, kept only for those that something befell: attempts that failed,
-- workers that died running it, thieves that took it. Behind that stand the outcomes of its
-- last failed attempts, a line each, the latest first.
local function read_history(text)
  local attempts, deaths, steals, failures =
    string.match(text or '', '^(%d+):(%d+):(%d+)(.*)$')
  return tonumber(attempts or 0), tonumber(deaths or 0), tonumber(steals or 0), failures or ''
end

local function write_history(attempts, deaths, steals, failures)
  return attempts .. ':' .. deaths .. ':' .. steals .. failures
end

local function add_failure(failures, outcome)
  if outcome == '' then return failures end
  local lines = {outcome}
  for line in string.gmatch(failures, '[^\n]+') do
    if #lines < 3 then lines[#lines + 1] = line end
  end
  return '\n' .. table.concat(lines, '\n')
end
