-- Removes a latch.
-- KEYS[1] latch, KEYS[2] channel, KEYS[3] receipt   ARGV number and life
-- Answers {1} when there was one, else {0}.
if redis.call('exists', KEYS[1]) == 0 then
  return done(0)
end
redis.call(ARGV[#ARGV], KEYS[2], '1')
redis.call('del', KEYS[1])
return done(1)
