--- needs: usage
-- Tell how large the namespace is.
--
-- KEYS[1]  index    zset   key -> when it was last entered, ms
-- KEYS[2]  sizes    hash   key -> bytes when last measured
-- KEYS[3]  state    hash   stamp, turn, bytes
--
-- Reply: keys, bytes.

local keys, bytes = usage(KEYS[1], KEYS[2], KEYS[3])
return {keys, bytes}
