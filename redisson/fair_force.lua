-- Frees a fair lock whoever holds it, and tells the head of the queue, which stays.
-- KEYS[4] channel, to which the head's id is added
-- Answers {1} when there was a lock, else {0}.
local head = purge()
if redis.call('del', KEYS[1]) == 0 then
  return {0}
end
if head then
  redis.call('publish', KEYS[4] .. ':' .. head, '0')
end
return {1}
