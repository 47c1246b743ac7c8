-- Gives a permit back, and removes a semaphore that was made here and that nobody uses any more.
-- Safe to repeat.
-- Answers {1} when given back, {0} when it was not taken.
if not taken then
  return {0}
end
redis.call('zrem', KEYS[2], ARGV[1])
local free = redis.call('incrby', KEYS[1], 1)
if redis.call('zcard', KEYS[2]) == 0 and redis.call('pttl', KEYS[1]) >= 0 then
  redis.call('del', KEYS[1])
end
if free > 0 then
  redis.call(ARGV[#ARGV], ARGV[2], free)
end
return {1}
