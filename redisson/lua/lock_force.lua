-- Frees a lock whoever holds it. A free lock stays silent.
-- KEYS[1] lock   ARGV[1] channel or nothing, then the receipt
-- Answers {1, those who held it} when there was a lock, else {0, {}}.
local told = holders()
if redis.call('del', KEYS[1]) == 0 then
  return done(0, {})
end
if ARGV[1] ~= '' then
  redis.call(ARGV[#ARGV], ARGV[1], '0')
end
return done(1, told)
