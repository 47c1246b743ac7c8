-- Takes a member who waits no more out of the wake list, and wakes others if the lock is free.
-- Safe to repeat: it may wake one too many.
-- KEYS[1] lock, KEYS[2] wake list or nothing   ARGV[1] member, ARGV[2] channel, last ARGV publish or spublish
-- Answers {1}.
if KEYS[2] then
  redis.call('zrem', KEYS[2], ARGV[1])
  if redis.call('exists', KEYS[1]) == 0 then
    announce(KEYS[2], ARGV[#ARGV], ARGV[2])
  end
end
return {1}
