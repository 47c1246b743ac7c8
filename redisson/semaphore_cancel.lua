-- Gives back what a request took, and keeps it from taking anything if it is still on its way. Safe to repeat.
-- KEYS[1] semaphore, KEYS[2] channel, KEYS[3] receipt of the request   ARGV[1] its number, ARGV[2] life of the receipt in ms
-- Answers {1} when there was something to give back, else {0}.
local seen, taken = string.match(redis.call('get', KEYS[3]) or '', '^(%d+) (-?%d+)$')
if seen and tonumber(seen) > tonumber(ARGV[1]) then
  return {0}
end
local value = redis.call('get', KEYS[1])
local give = seen == ARGV[1] and taken ~= '0' and value
if give then
  redis.call(ARGV[#ARGV], KEYS[2], math.max(0, value + taken))
  redis.call('incrby', KEYS[1], taken)
end
redis.call('set', KEYS[3], ARGV[1] .. ' 0', 'px', ARGV[2])
return {give and 1 or 0}
