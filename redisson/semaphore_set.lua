-- Makes a semaphore that does not exist.
-- KEYS[1] semaphore, KEYS[2] channel, KEYS[3] receipt   ARGV[1] permits, ARGV[2] its life in ms or 0, then number and life of the receipt
-- Answers {1} when made, else {0}.
if redis.call('exists', KEYS[1]) == 1 then
  return done(0)
end
redis.call(ARGV[#ARGV], KEYS[2], ARGV[1])
if ARGV[2] == '0' then
  redis.call('set', KEYS[1], ARGV[1])
else
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return done(1)
