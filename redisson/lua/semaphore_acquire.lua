-- Takes permits if that many are free, or all that are. A time to live of the semaphore ends with the latter, as Redisson has it.
-- KEYS[1] semaphore   ARGV[1] permits, or 'all'; then the receipt
-- Answers {permits} when taken, else {0}.
local value = tonumber(redis.call('get', KEYS[1]) or '0')
assert(value, 'value of the semaphore is not a number')
local wanted = tonumber(ARGV[1]) or value
if wanted == 0 or value < wanted then
  return done(0)
end
if ARGV[1] == 'all' then
  redis.call('set', KEYS[1], 0)
else
  redis.call('decrby', KEYS[1], wanted)
end
return done(wanted)
