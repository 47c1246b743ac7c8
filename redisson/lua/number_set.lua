-- Makes a number that does not exist: the permits of a semaphore, the count of a latch.
-- KEYS[1] number   ARGV[1] channel, ARGV[2] what to publish, ARGV[3] the number, ARGV[4] its life in ms or 0, then the receipt
-- Answers {1} when made, else {0}.
if redis.call('exists', KEYS[1]) == 1 then
  return done(0)
end
redis.call(ARGV[#ARGV], ARGV[1], ARGV[2])
if ARGV[4] == '0' then
  redis.call('set', KEYS[1], ARGV[3])
else
  redis.call('set', KEYS[1], ARGV[3], 'px', ARGV[4])
end
return done(1)
