-- Sets how many permits there are, free and taken together; free ones may become negative. Safe to repeat.
-- KEYS[1..3] as above   ARGV[1] permits
-- Answers {1}.
local change = ARGV[1] - free - redis.call('zcard', KEYS[2])
if redis.call('exists', KEYS[1]) == 0 then
  redis.call(ARGV[#ARGV], KEYS[3], ARGV[1])
  redis.call('set', KEYS[1], ARGV[1])
elseif change ~= 0 then
  redis.call(ARGV[#ARGV], KEYS[3], ARGV[1])
  redis.call('incrby', KEYS[1], change)
end
return {1}
