-- Move one entry to the dead-letter stream, unless it is settled already.
--
-- KEY stream  stream
-- KEY dead    stream  of what was given up
-- ARG group       str
-- ARG id          str  of the entry
-- ARG deliveries  int  how often it was delivered
-- ARG most        int  about how many dead letters to keep
-- ARGS fields     str  field, value, field, value, …
--
-- Reply: 1 if it was moved, 0 if it was settled already.

if #redis.call('XPENDING', stream, group, id, id, 1) == 0 then return 0 end
-- The letter comes before the acknowledgement: if it is refused, nothing is lost.
redis.call('XADD', dead, 'MAXLEN', '~', most, '*', 'ws-origin', id,
  'ws-group', group, 'ws-deliveries', deliveries, unpack(ARGV, fields_at))
return redis.call('XACK', stream, group, id)
