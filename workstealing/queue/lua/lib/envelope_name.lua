-- Read the name and the version of a task from its envelope; nil if nobody can read it.
local function envelope_name(envelope)
  local name, version = string.match(envelope, '^{"v":1,"name":"([^"\\]*)","version":(%d+)')
  if not name then
    name, version = string.match(envelope,
      '^{"sig":"[^"\\]*","v":1,"name":"([^"\\]*)","version":(%d+)')
  end
  if name then return name, version end
  local is_read, value = pcall(cjson.decode, envelope)
  if not is_read or type(value) ~= 'table' or type(value.name) ~= 'string' then return nil end
  return value.name, tostring(value.version)
end
