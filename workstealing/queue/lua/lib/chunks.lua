-- Lua can unpack some thousand values at once, not more.
local function in_chunks(values, size, act)
  for first = 1, #values, size do
    act(unpack(values, first, math.min(first + size - 1, #values)))
  end
end
