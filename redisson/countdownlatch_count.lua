-- KEYS[1] latch
-- Answers {count}, 0 without a latch.
local count = tonumber(redis.call('get', KEYS[1]) or '0')
assert(count, 'value of the latch is not a number')
return {math.max(0, count)}
