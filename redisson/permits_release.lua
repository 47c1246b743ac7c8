-- Gives a permit back. With a receipt, its request is kept from taking a permit if it is still on its way. Safe to repeat.
-- KEYS[1..3] as above, KEYS[4] receipt, if any   ARGV[1] id, ARGV[2] number, ARGV[3] life
-- Answers {1} when given back, {0} when nobody has it.
local taken = redis.call('zscore', KEYS[2], ARGV[1])
if taken then
  redis.call(ARGV[#ARGV], KEYS[3], math.max(0, free + 1))
  redis.call('zrem', KEYS[2], ARGV[1])
  redis.call('incrby', KEYS[1], 1)
end
if KEYS[4] then
  redis.call('set', KEYS[4], ARGV[2] .. ' 0', 'px', ARGV[3])
end
return {taken and 1 or 0}
