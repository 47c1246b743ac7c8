-- Frees a read/write lock that is in the given mode, whoever holds it.
-- KEYS[1] lock   ARGV[1] mode, ARGV[2] message, ARGV[3] channel, then the receipt
-- Answers {1, those who held it} when there was such a lock, else {0, {}}.
if redis.call('hget', KEYS[1], 'mode') ~= ARGV[1] then
  return done(0, {})
end
local told = holders()
redis.call('del', KEYS[1])
redis.call(ARGV[#ARGV], ARGV[3], ARGV[2])
return done(1, told)
