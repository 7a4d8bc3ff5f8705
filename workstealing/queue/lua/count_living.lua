--- needs: number_living
-- Count the workers whose lease has not ended.
--
-- KEY workers  zset  worker -> end of its lease
-- KEY members  hash  worker -> incarnation|description
-- ARG at_ms    int   by the clock of the server
--
-- Reply: their number.

return number_living('(' .. string.format('%d', at_ms))
