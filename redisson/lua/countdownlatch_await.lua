-- Looks whether a latch is shut.
-- KEYS[1] latch
-- Answers {1} while there is something to wait for, else {0}.
local count = tonumber(redis.call('getex', KEYS[1]) or '0') -- which a replica refuses, as if it were a write; see scripts.go
assert(count and count == count, 'value of the latch is not a number')
return {count > 0 and 1 or 0}
