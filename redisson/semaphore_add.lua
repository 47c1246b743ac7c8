-- Changes the number of free permits, which may become negative. A time to live of the semaphore ends, as Redisson has it.
-- KEYS[1] semaphore, KEYS[2] channel, KEYS[3] receipt   ARGV[1] permits, ARGV[2] what to publish: 'value' or, if positive, 'change'; then number and life
-- Answers {1}.
local value, change = tonumber(redis.call('get', KEYS[1]) or '0'), tonumber(ARGV[1])
assert(value, 'value of the semaphore is not a number')
value = value + change
if ARGV[2] == 'value' then
  redis.call(ARGV[#ARGV], KEYS[2], math.max(0, value))
elseif change > 0 then
  redis.call(ARGV[#ARGV], KEYS[2], change)
end
redis.call('set', KEYS[1], value)
return done(1)
