-- Tell whether this incarnation of the worker is a member.
local function is_member()
  --- uses: members, worker, incarnation
  local member = redis.call('HGET', members, worker)
  return member and string.sub(member, 1, #incarnation + 1) == incarnation .. '|'
end
