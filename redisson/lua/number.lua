-- Reads a number: a fencing token, the permits of a semaphore, the count of a latch.
-- KEYS[1] number
-- Answers {number}, 0 when there is none. One that Lua can't count with is 2^53, or the negative of that.
local value = tonumber(redis.call('get', KEYS[1]) or '0')
assert(value and value == value, 'value is not a number')
return {math.max(-2 ^ 53, math.min(value, 2 ^ 53))}
