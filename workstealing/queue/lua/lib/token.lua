--- needs: first_write
-- One new fencing token for all that a script assigns; drawn when it is first needed.
local token
local function new_token()
  --- uses: control
  token = token or first_write('HINCRBY', control, 'token', 1)
  return token
end
