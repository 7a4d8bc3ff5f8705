--- needs: first_write
-- End the input of a queue, or reopen it.
--
-- KEY control  hash  input_ended
-- ARG ended  flag  no more input comes
--
-- Reply: 1.

if ended then
  first_write('HSET', control, 'input_ended', 1)
else
  redis.call('HDEL', control, 'input_ended')
end
return 1
