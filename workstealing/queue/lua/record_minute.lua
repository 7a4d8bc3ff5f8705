--- needs: first_write
-- Add what ended on a worker to the numbers of a minute.
--
-- KEY minute  hash  name@version -> done, failed, milliseconds, and a histogram
-- ARG kept_ms  int  how long the minute is kept
-- ARG most     int  names that have numbers of their own; the others are added up as "*"
-- ARGS counts  str  name and numbers, one after the other
--
-- Reply: 1.

for i = counts_at, #ARGV, 2 do
  local name = ARGV[i]
  local known = redis.call('HGET', minute, name)
  if not known and redis.call('HLEN', minute) >= most then
    name = '*'
    known = redis.call('HGET', minute, name)
  end
  local sums = {}
  for number in string.gmatch(ARGV[i + 1], '%d+') do sums[#sums + 1] = tonumber(number) end
  local n = 0
  for number in string.gmatch(known or '', '%d+') do
    n = n + 1
    if sums[n] then sums[n] = sums[n] + tonumber(number) end
  end
  for m, sum in ipairs(sums) do sums[m] = string.format('%d', sum) end
  first_write('HSET', minute, name, table.concat(sums, ' '))
end
redis.call('PEXPIRE', minute, kept_ms)
return 1
