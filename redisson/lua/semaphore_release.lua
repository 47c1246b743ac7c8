-- Adds free permits and notifies the waiters of how many there are.
-- KEYS[1] semaphore   ARGV[1] channel, ARGV[2] permits, ARGV[3] '1' to leave a missing semaphore alone, then the receipt
-- Answers {1} when done, {0} when there is no semaphore.
local value = redis.call('get', KEYS[1])
if ARGV[3] == '1' and not value then
  return done(0)
end
value = tonumber(value or '0')
assert(value, 'value of the semaphore is not a number')
-- Before the change, so that a user who may not publish changes nothing. Nobody can look before the script has ended.
redis.call(ARGV[#ARGV], ARGV[1], math.max(0, value + tonumber(ARGV[2])))
redis.call('incrby', KEYS[1], ARGV[2])
return done(1)
