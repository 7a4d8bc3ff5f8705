--- needs: clock
-- Add what one process counted lately to the ledger of the fleet.
--
-- KEY stretch        hash  kind, host and name, tabs between them -> numbers, then a text on a
--                          line of its own
-- ARG kept_ms        int   how long the stretch is kept
-- ARG most           int   fields at most; what is beyond them is not counted
-- ARG most_of_hosts  int   fields after which new hosts get none of their own: they are added up
--                          as "*"
-- ARGS entries       str   for each entry: its field; numbers, of which the last but one is kept
--                          if it is the largest, and the last is how long ago something happened
--                          in ms, or -1; a text that replaces the one before
--
-- Reply: how many were added.

local now, added = now_ms(), 0
local size = redis.call('HLEN', stretch)
for n = entries_at, #ARGV, 3 do
  local field, numbers, text = ARGV[n], {}, ARGV[n + 2]
  for number in string.gmatch(ARGV[n + 1], '%S+') do numbers[#numbers + 1] = tonumber(number) end
  local last = #numbers
  numbers[last] = numbers[last] >= 0 and now - numbers[last] or 0
  local known = redis.call('HGET', stretch, field)
  if not known and size >= most_of_hosts then
    -- What is of no host keeps its name.
    field = string.gsub(field, '^([^\t]*)\t[^\t]+\t', '%1\t*\t')
    known = redis.call('HGET', stretch, field)
  end
  if known or size < most then
    local at = 0
    for number in string.gmatch(string.match(known or '', '^[^\n]*'), '%S+') do
      at = at + 1
      local before = tonumber(number) or 0
      if at >= last - 1 then
        numbers[at] = math.max(numbers[at] or 0, before)
      else
        numbers[at] = numbers[at] + before
      end
      if at == last then break end
    end
    for i, number in ipairs(numbers) do numbers[i] = string.format('%.0f', number) end
    redis.call('HSET', stretch, field, table.concat(numbers, ' ') .. '\n' .. text)
    if not known then size = size + 1 end
    added = added + 1
  end
end
redis.call('PEXPIRE', stretch, kept_ms)
return added
