-- Frees a fair lock whoever holds it, and notifies the head of the queue, which stays.
-- ARGV[1] channel, to which the head's id is added, then the receipt
-- Answers {1, those who held it} when there was a lock, else {0, {}}.
local told, head = holders(), purge()
if redis.call('del', KEYS[1]) == 0 then
  return done(0, {})
end
if head then
  redis.call(ARGV[#ARGV], ARGV[1] .. ':' .. head, '0')
end
return done(1, told)
