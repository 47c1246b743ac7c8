-- Takes permits if that many may be taken now.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] member: 1 byte length, random bytes, 4 bytes permits, then the receipt
-- Answers {1} when taken, else {0, ms to wait}; {-1} without a rate, {-2, rate} when it is lower than what is wanted.
if not known then
  return done(-1)
end
local wanted = tonumber(ARGV[1])
if wanted > rate then
  done(0)
  return {-2, rate}
end
redis.call('zremrangebyscore', taken, '-inf', past)
if value < wanted then
  done(0)
  leave(value)
  local first = redis.call('zrange', taken, 0, 0, 'withscores')
  return {0, 3 + interval - (now - tonumber(first[2] or now))}
end
redis.call('zadd', taken, now, ARGV[2])
leave(value - wanted)
return done(1)
