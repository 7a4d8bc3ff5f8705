-- Name the first task of each of some lines.
--
-- KEY lines  zset  line, sequence, id; of all tasks that wait in lines
-- ARG most   int  lines
--
-- Reply: ids

local ids, from = {}, '-'
for _ = 1, most do
  local member = redis.call('ZRANGE', lines, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not member then break end
  local line = string.sub(member, 1, string.find(member, '\0', 1, true) - 1)
  ids[#ids + 1] = string.sub(member, #line + 19)
  from = '(' .. line .. '\1'
end
return ids
