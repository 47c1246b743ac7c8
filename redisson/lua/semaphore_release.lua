-- Adds free permits and notifies the waiters of how many there are.
-- KEYS[1] semaphore   ARGV[1] channel, ARGV[2] permits, ARGV[3] '1' to leave a missing semaphore alone, or else 0; or 'undo' and the
-- number of the request in the same slot that took them; then the receipt
-- Answers {1} when done, {0} when there is no semaphore, or nothing was taken.
local value, permits = redis.call('get', KEYS[1]), ARGV[2]
if ARGV[2] == 'undo' then
  permits = seen == ARGV[3] and outcome or '0'
end
if permits == '0' or ARGV[3] ~= '0' and not value then
  return done(0)
end
value = tonumber(value or '0')
assert(value, 'value of the semaphore is not a number')
-- Before the change, so that a user who may not publish changes nothing. Nobody can look before the script has ended.
redis.call(ARGV[#ARGV], ARGV[1], math.max(0, value + tonumber(permits)))
redis.call('incrby', KEYS[1], permits)
return done(1)
