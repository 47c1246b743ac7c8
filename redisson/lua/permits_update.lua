-- Gives a permit a new lease, which may be shorter.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] id, ARGV[3] lease in ms, 0 without end, then the receipt
-- Answers {1} when done, {0} when nobody has it.
if not redis.call('zscore', KEYS[2], ARGV[2]) then
  return done(0)
end
redis.call('zadd', KEYS[2], ends(ARGV[3]), ARGV[2])
return done(1)
