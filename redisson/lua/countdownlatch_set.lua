-- Makes a latch that does not exist.
-- KEYS[1] latch   ARGV[1] channel, ARGV[2] count, then the receipt
-- Answers {1} when made, else {0}.
if redis.call('exists', KEYS[1]) == 1 then
  return done(0)
end
redis.call(ARGV[#ARGV], ARGV[1], '1')
redis.call('set', KEYS[1], ARGV[2])
return done(1)
