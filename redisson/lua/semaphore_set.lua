-- Makes a semaphore that does not exist.
-- KEYS[1] semaphore   ARGV[1] channel, ARGV[2] permits, ARGV[3] its life in ms or 0, then the receipt
-- Answers {1} when made, else {0}.
if redis.call('exists', KEYS[1]) == 1 then
  return done(0)
end
redis.call(ARGV[#ARGV], ARGV[1], ARGV[2])
if ARGV[3] == '0' then
  redis.call('set', KEYS[1], ARGV[2])
else
  redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3])
end
return done(1)
