-- Takes as many permits as there are ids, if that many are free.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] lease in ms or 0, ARGV[3...] ids, then the receipt
-- Answers {1} when taken, else {0, ms until the next one becomes free by itself, or -1}.
local wanted = #ARGV - 6
if free >= wanted then
  redis.call('decrby', KEYS[1], wanted)
  for i = 3, 2 + wanted do
    redis.call('zadd', KEYS[2], ends(ARGV[2]), ARGV[i])
  end
  local ttl = redis.call('pttl', KEYS[1])
  if ttl > 0 then
    redis.call('pexpire', KEYS[2], ttl)
  elseif redis.call('pttl', KEYS[2]) > 0 then -- of the semaphore's that has ended: with it, permits would go that nobody counts
    redis.call('pexpire', KEYS[2], never)
  end
  return done(1)
end
local at = tonumber(redis.call('zrange', KEYS[2], 0, 0, 'withscores')[2] or never)
done(0)
return {0, at < never and at - now or -1}
