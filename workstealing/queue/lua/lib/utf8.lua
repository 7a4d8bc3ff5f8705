-- Tell whether a string is valid UTF-8. Sequences are replaced, not removed, so that bytes
-- that stood apart do not form another.
local function is_utf8(text)
  if not string.find(text, '[\128-\255]') then return true end
  for _, sequence in ipairs({
    '[\194-\223][\128-\191]',
    '\224[\160-\191][\128-\191]',
    '[\225-\236\238\239][\128-\191][\128-\191]',
    '\237[\128-\159][\128-\191]',
    '\240[\144-\191][\128-\191][\128-\191]',
    '[\241-\243][\128-\191][\128-\191][\128-\191]',
    '\244[\128-\143][\128-\191][\128-\191]',
  }) do
    text = string.gsub(text, sequence, '?')
  end
  return not string.find(text, '[\128-\255]')
end
