-- Gives permits back, up to the rate. What is left grows as with Redisson, which leaves what was taken as it is and so gives
-- the same permits back a second time when their interval is over. Here they also go from what was taken, the oldest first,
-- as nobody says which they were: what remains then comes back no sooner than it should.
-- KEYS[1..5] as above   ARGV[1] permits, then the receipt
-- Answers {1} when done, {-1} without a rate.
if not known then
  return done(-1)
end
redis.call('zremrangebyscore', taken, '-inf', past)
local back = tonumber(ARGV[1])
repeat
  local members = redis.call('zrange', taken, 0, math.min(back, 1000) - 1, 'withscores')
  local n, rest = 0, 0
  while back > 0 and members[2 * n + 1] do
    rest = permits({members[2 * n + 1]}) - back
    back = math.max(0, -rest)
    n = n + 1
  end
  if n > 0 then
    redis.call('zremrangebyrank', taken, 0, n - 1)
  end
  if rest > 0 then
    local last, packed = members[2 * n - 1], ''
    for _ = 1, 4 do
      packed, rest = packed .. string.char(rest % 256), math.floor(rest / 256)
    end
    redis.call('zadd', taken, members[2 * n], string.sub(last, 1, -5) .. packed)
  end
until back == 0 or n == 0
leave(math.min(rate, value + ARGV[1]), left, taken, keep)
return done(1)
