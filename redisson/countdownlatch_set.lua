-- Makes a latch that does not exist.
-- KEYS[1] latch, KEYS[2] channel, KEYS[3] receipt   ARGV[1] count, then number and life
-- Answers {1} when made, else {0}.
if redis.call('exists', KEYS[1]) == 1 then
  return done(0)
end
redis.call(ARGV[#ARGV], KEYS[2], '1')
redis.call('set', KEYS[1], ARGV[1])
return done(1)
