-- Gives permits back, all or none. As in Redisson, the message for one permit is how many are free now, and for several how many were given back.
-- KEYS[1..2], ARGV[1] as above, ARGV[2...] ids, each of them once, then the receipt
-- Answers {1} when given back, {0} when nobody has one of them.
local last = #ARGV - 4
for i = 2, last do
  if not redis.call('zscore', KEYS[2], ARGV[i]) then
    return done(0)
  end
end
redis.call(ARGV[#ARGV], ARGV[1], last > 2 and last - 1 or math.max(0, free + 1))
for i = 2, last do
  redis.call('zrem', KEYS[2], ARGV[i])
end
redis.call('incrby', KEYS[1], last - 1)
return done(1)
