--- needs: usage
-- Return how large the namespace is.
--
-- KEY index  zset  key -> when it was last entered, ms
-- KEY sizes  hash  key -> bytes when last measured
-- KEY state  hash  stamp, turn, bytes
--
-- Reply: keys, bytes.

local keys, bytes = usage(index, sizes, state)
return {keys, bytes}
