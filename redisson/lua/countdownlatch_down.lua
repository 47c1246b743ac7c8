-- Counts down by one; at zero the latch is gone and all waiters are notified. A missing latch is at zero.
-- KEYS[1] latch   ARGV[1] channel, then the receipt
-- Answers {1}.
local count = tonumber(redis.call('get', KEYS[1]) or '0')
assert(count, 'value of the latch is not a number')
if count > 1 then
  redis.call('decr', KEYS[1])
else
  if count == 1 then
    redis.call('set', KEYS[1], '', 'nx') -- changes nothing, and is refused if the others would be: who hears the message waits no more
    redis.call(ARGV[#ARGV], ARGV[1], '0')
  end
  redis.call('del', KEYS[1])
end
return done(1)
