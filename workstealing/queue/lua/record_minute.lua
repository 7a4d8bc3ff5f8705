--- needs: first_write
-- Add what ended on a worker to the numbers of a minute, and to those of its ten minutes.
--
-- KEY ten_minutes      hash  minute of the ten, name@version -> done, failed, milliseconds,
--                            a histogram; the same of waits
-- KEY hundred_minutes  hash  the same by ten minutes of the hundred
-- ARG minute           int   which of the ten, from 0
-- ARG ten              int   which ten of the hundred, from 0
-- ARG minutes_kept_ms  int   how long the minutes are kept
-- ARG tens_kept_ms     int   how long the ten minutes are kept
-- ARG most  int  names that have numbers of their own; the others are added up as "*"
-- ARGS counts  str  name and numbers, one after the other
--
-- Reply: 1.

local function add(key, stretch, kept_ms)
  -- What earlier stretches have left may be used up, so all ten have ten times as many.
  local room = most * (stretch + 1)
  for i = counts_at, #ARGV, 2 do
    local field = stretch .. ' ' .. ARGV[i]
    local known = redis.call('HGET', key, field)
    if not known and redis.call('HLEN', key) >= room then
      field = stretch .. ' *'
      known = redis.call('HGET', key, field)
    end
    local sums = {}
    for number in string.gmatch(ARGV[i + 1], '%d+') do sums[#sums + 1] = tonumber(number) end
    local n = 0
    for number in string.gmatch(known or '', '%d+') do
      n = n + 1
      sums[n] = (sums[n] or 0) + tonumber(number)
    end
    for m, sum in ipairs(sums) do sums[m] = string.format('%d', sum) end
    first_write('HSET', key, field, table.concat(sums, ' '))
  end
  redis.call('PEXPIRE', key, kept_ms)
end

add(ten_minutes, minute, minutes_kept_ms)
add(hundred_minutes, ten, tens_kept_ms)
return 1
