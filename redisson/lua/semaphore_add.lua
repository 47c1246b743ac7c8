-- Changes the number of free permits, which may become negative. A time to live of the semaphore ends, as Redisson has it.
-- KEYS[1] semaphore, KEYS[2] its taken permits, for 'change'   ARGV[1] channel, ARGV[2] permits, ARGV[3] what to publish: 'value'
-- or, if positive, 'change'; then the receipt
-- Answers {1}.
local value, change = tonumber(redis.call('get', KEYS[1]) or '0'), tonumber(ARGV[2])
assert(value, 'value of the semaphore is not a number')
value = value + change
if ARGV[3] == 'value' then
  redis.call(ARGV[#ARGV], ARGV[1], math.max(0, value))
elseif change > 0 then
  redis.call(ARGV[#ARGV], ARGV[1], change)
end
redis.call('set', KEYS[1], value)
if ARGV[3] == 'change' and redis.call('pttl', KEYS[2]) > 0 then
  redis.call('pexpire', KEYS[2], 922337203685477) -- for ever: with the old end, permits would go that nobody counts
end
return done(1)
