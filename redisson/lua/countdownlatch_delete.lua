-- Removes a latch.
-- KEYS[1] latch   ARGV[1] channel, then the receipt
-- Answers {1} when there was one, else {0}.
if redis.call('exists', KEYS[1]) == 0 then
  return done(0)
end
redis.call(ARGV[#ARGV], ARGV[1], '1')
redis.call('del', KEYS[1])
return done(1)
