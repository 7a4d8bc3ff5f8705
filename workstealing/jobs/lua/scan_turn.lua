--- needs: despite_full
-- Choose by turns the node to scan, and return how far its scan has come.
--
-- KEY state  hash  turn, place|<node> -> pass:cursor, counts
-- ARGS nodes  str  names
--
-- Reply: position of the node among the names, from 0, then its place.

despite_full(state)
local position = redis.call('HINCRBY', state, 'turn', 1) % #ARGV
local place = redis.call('HGET', state, 'place|' .. ARGV[position + 1])
return {position, place or '0:0'}
