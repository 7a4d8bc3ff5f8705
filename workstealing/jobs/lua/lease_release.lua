-- Give leases back, if they are still ours.
--
-- KEYS leases  str  token of the holder
-- ARGS tokens  str  ours, in the order of the leases
--
-- Reply: number of leases given back; the others were not ours any more.

local released = 0
for i, lease in ipairs(KEYS) do
  if redis.call('GET', lease) == ARGV[i] then
    released = released + redis.call('UNLINK', lease)
  end
end
return released
