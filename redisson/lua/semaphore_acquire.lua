-- Takes permits if that many are free.
-- KEYS[1] semaphore   ARGV[1] permits, then the receipt
-- Answers {permits} when taken, else {0}.
local value = tonumber(redis.call('get', KEYS[1]) or '0')
local wanted = tonumber(ARGV[1])
assert(value, 'value of the semaphore is not a number')
if value < wanted then
  return done(0)
end
redis.call('decrby', KEYS[1], wanted)
return done(wanted)
