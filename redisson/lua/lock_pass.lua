-- Takes a member who waits no more out of the wake list of a lock; see pass.
-- Safe to repeat: it may wake one too many.
-- KEYS[1] lock, KEYS[2] wake list or nothing   ARGV[1] member, ARGV[2] channel, last ARGV publish or spublish
-- Answers {1}.
if KEYS[2] then
  pass(KEYS[2], ARGV[1], 1 - redis.call('exists', KEYS[1]), KEYS[1], ARGV[#ARGV], ARGV[2])
end
return {1}
