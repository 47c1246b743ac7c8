-- Gives a permit back, or to an heir who keeps it for a while. Removes a semaphore that was made here and that nobody uses
-- any more.
-- Safe to repeat: a second run finds nothing.
-- ARGV[3] id of the heir, ARGV[4] how long it keeps the permit in ms or 0
-- Answers {1} when given back, {0} when it was not taken.
if not taken then
  return {0}
end
redis.call('zrem', KEYS[2], ARGV[1])
local kept = tonumber(ARGV[4])
if kept > 0 then
  ARGV[1], taken = ARGV[3], nil
  keep(kept)
  return {1}
end
-- Without a number, it is the next acquire that counts what is free.
local free = redis.call('exists', KEYS[1]) == 1 and redis.call('incrby', KEYS[1], 1) or 1
if redis.call('zcard', KEYS[2]) == 0 and redis.call('exists', KEYS[3]) == 1 then
  redis.call('del', KEYS[1], KEYS[3])
end
if free > 0 then
  redis.call(ARGV[#ARGV], ARGV[2], free)
end
return {1}
