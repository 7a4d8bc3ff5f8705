-- How little a key is used: seconds idle or, where an LFU policy hides those, 255
-- less its frequency. It grows with time and falls with each use. No key: false.
local function coldness(key)
  local idle = redis.pcall('OBJECT', 'IDLETIME', key)
  if type(idle) == 'table' and idle.err then
    local frequency = redis.call('OBJECT', 'FREQ', key)
    return frequency and 255 - frequency
  end
  return idle
end
