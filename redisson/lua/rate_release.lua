-- Gives permits back, up to the rate. What is left grows as with Redisson, which leaves what was taken as it is and so gives
-- the same permits back a second time when their interval is over. Here they also go from what was taken, the oldest first,
-- as nobody says which they were: what remains then comes back no sooner than it should. An undo says which they were, and gives
-- back only what was taken less than an interval ago: the rest is in the value already.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] the member of an acquire that is undone, or '', then the receipt
-- Answers {1} when done, {-1} without a rate.
if not known then
  return done(-1)
end
redis.call('zremrangebyscore', taken, '-inf', past)
local back = tonumber(ARGV[1])
local given = back
if ARGV[2] ~= '' then
  given, back = given * redis.call('zrem', taken, ARGV[2]), 0
end
while back > 0 do
  local first, at = unpack(redis.call('zrange', taken, 0, 0, 'withscores'))
  if not first then
    break
  end
  redis.call('zremrangebyrank', taken, 0, 0)
  local rest, packed = permits({first}) - back, ''
  back = -rest
  if rest > 0 then
    for _ = 1, 4 do
      packed, rest = packed .. string.char(rest % 256), math.floor(rest / 256)
    end
    redis.call('zadd', taken, at, string.sub(first, 1, -5) .. packed)
  end
end
leave(math.min(rate, value + given))
return done(1)
