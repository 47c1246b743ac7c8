-- Gives back what a request took less than an interval ago. Safe to repeat.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] member
-- Answers {1} when there was something to give back, else {0}.
if redis.call('zrem', taken, ARGV[2]) == 0 then
  return {0}
end
if redis.call('exists', left) == 1 then
  redis.call('incrby', left, ARGV[1])
end
return {1}
