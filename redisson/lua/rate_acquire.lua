-- Takes permits if that many may be taken now. Safe to repeat: a second run finds the member of the first, and one that comes
-- after its request is over finds the receipt of that.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] member: 1 byte length, random bytes, 4 bytes permits, ARGV[3] receipt, ARGV[4]
-- number of the request
-- Answers {1, 0} when taken, else {0, ms to wait}; {-1, 0} without a rate, {-2, rate} when it is lower than what is wanted.
if not known then
  return {-1, 0}
end
if redis.call('zscore', taken, ARGV[2]) then
  return {1, 0}
end
local seen = string.match(redis.call('get', ARGV[3]) or '', '^%d+')
if seen and tonumber(seen) >= tonumber(ARGV[4]) then
  return {0, interval}
end
local wanted = tonumber(ARGV[1])
if wanted > rate then
  return {-2, rate}
end
redis.call('zremrangebyscore', taken, '-inf', past)
local answer
if value < wanted then
  local first = redis.call('zrange', taken, 0, 0, 'withscores')
  answer = {0, 3 + interval - (now - tonumber(first[2] or now))}
else
  redis.call('zadd', taken, now, ARGV[2])
  value = value - wanted
  answer = {1, 0}
end
redis.call('set', left, value)
live(left, taken, keep)
return answer
