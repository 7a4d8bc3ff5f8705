-- Tell whether the worker is a member, and not another one that took its name since.
local function is_member()
  --- uses: members, worker, incarnation
  local member = redis.call('HGET', members, worker)
  return member and string.sub(member, 1, #incarnation + 1) == incarnation .. '|'
end
