-- Frees a lock whoever holds it. A free lock stays silent.
-- KEYS[1] lock, KEYS[2] channel
-- Answers {1} when there was a lock, else {0}.
if redis.call('del', KEYS[1]) == 0 then
  return {0}
end
redis.call('publish', KEYS[2], '0')
return {1}
