-- Return only both ends of a long text: what lists show of it is there.
local function both_ends(text)
  --- uses: most
  local tail = 512
  if #text <= most + tail then return text end
  -- Not in the middle of a character: some clients refuse half of one.
  local head = string.gsub(string.sub(text, 1, most), '[\192-\255]?[\128-\191]*$', '')
  local rest = string.gsub(string.sub(text, -tail), '^[\128-\191]+', '')
  return head .. rest
end
