-- Gives back what a request took, and keeps it from taking anything if it is still on its way. Safe to repeat.
-- KEYS[1] semaphore   ARGV[1] channel, ARGV[2] receipt of the request, ARGV[3] its number, ARGV[4] life of the receipt in ms,
-- last ARGV publish or spublish
-- Answers {1} when there was something to give back, else {0}.
local seen, taken = string.match(redis.call('get', ARGV[2]) or '', '^(%d+) (-?%d+)$')
if seen and tonumber(seen) > tonumber(ARGV[3]) then
  return {0}
end
local value = redis.call('get', KEYS[1])
local give = seen == ARGV[3] and taken ~= '0' and value
if give then
  redis.call(ARGV[#ARGV], ARGV[1], math.max(0, value + taken))
  redis.call('incrby', KEYS[1], taken)
end
redis.call('set', ARGV[2], ARGV[3] .. ' 0', 'px', ARGV[4])
return {give and 1 or 0}
