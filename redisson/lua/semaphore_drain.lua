-- Takes all free permits. A time to live of the semaphore ends, as Redisson has it.
-- KEYS[1] semaphore   ARGV the receipt
-- Answers {permits}.
local value = tonumber(redis.call('get', KEYS[1]) or '0')
assert(value, 'value of the semaphore is not a number')
if value == 0 then
  return done(0)
end
redis.call('set', KEYS[1], 0)
return done(value)
