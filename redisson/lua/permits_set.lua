-- Sets how many permits there are, free and taken together; free ones may become negative.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] permits, then the receipt
-- Answers {1}.
local change = ARGV[2] - free - redis.call('zcard', KEYS[2])
if change ~= 0 or redis.call('exists', KEYS[1]) == 0 then
  redis.call(ARGV[#ARGV], ARGV[1], ARGV[2])
  redis.call('incrby', KEYS[1], change)
end
return done(1)
