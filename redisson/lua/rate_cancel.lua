-- Gives back what a request took less than an interval ago, and keeps the request from taking anything if it is still on its way.
-- Safe to repeat.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] member, ARGV[3] receipt, ARGV[4] number of the request, ARGV[5] life of the
-- receipt in ms
-- Answers {1} when there was something to give back, else {0}.
redis.call('set', ARGV[3], ARGV[4] .. ' 0', 'px', ARGV[5])
if not known then
  return {0}
end
-- What was taken longer ago is in the value already.
local over = redis.call('zremrangebyscore', taken, '-inf', past)
local found = redis.call('zrem', taken, ARGV[2])
if over + found > 0 then
  leave(math.min(rate, value + found * ARGV[1]), left, taken, keep)
end
return {found}
