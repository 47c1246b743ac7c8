-- Frees a lock whoever holds it. A free lock stays silent.
-- KEYS[1] lock, KEYS[2] channel or nothing
-- Answers {1} when there was a lock, else {0}.
if redis.call('del', KEYS[1]) == 0 then
  return {0}
end
if KEYS[2] then
  redis.call('publish', KEYS[2], '0')
end
return {1}
