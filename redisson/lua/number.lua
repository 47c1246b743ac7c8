-- Reads a number: a fencing token, the permits of a semaphore, the count of a latch.
-- KEYS[1] number
-- Answers {number}, 0 when there is none.
local value = tonumber(redis.call('get', KEYS[1]) or '0')
assert(value, 'value is not a number')
return {value}
