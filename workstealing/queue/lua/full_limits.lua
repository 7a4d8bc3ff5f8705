--- needs: clock, limit_in_the_way
-- Name the limit that holds back each of some lines.
--
-- KEY limits   hash  limit -> its numbers; then those of the code, if others
-- KEY permits  hash  limit key -> how many tasks hold a permit
-- KEY rates    zset  limit key -> when its bucket is full
-- ARGS names   str  lines
--
-- Reply: the first limit key of each that has no room, empty if all have some.

local now, reply = now_ms(), {}
for n = names_at, #ARGV do reply[#reply + 1] = limit_in_the_way(ARGV[n], now) or '' end
return reply
