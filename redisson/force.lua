-- Frees a lock whoever holds it. A free lock stays silent.
-- KEYS[1] lock   ARGV[1] channel, ARGV[2] publish or spublish
-- Answers {1} when there was a lock, else {0}.
if redis.call('del', KEYS[1]) == 0 then
  return {0}
end
redis.call(ARGV[2], ARGV[1], '0')
return {1}
