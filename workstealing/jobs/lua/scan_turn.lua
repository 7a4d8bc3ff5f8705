--- needs: despite_full
-- Choose by turns the node to scan, and say how far its scan has come.
--
-- KEYS[1]  state    hash   turn, place|<node> -> pass:cursor, counts
-- ARGV[…]  nodes    str    names
--
-- Reply: position of the node among the names, from 0, then its place.

despite_full(KEYS[1])
local position = redis.call('HINCRBY', KEYS[1], 'turn', 1) % #ARGV
local place = redis.call('HGET', KEYS[1], 'place|' .. ARGV[position + 1])
return {position, place or '0:0'}
