-- Takes a permit if one is free.
-- KEYS[1..3] as above, KEYS[4] receipt   ARGV[1] id, ARGV[2] lease in ms or 0, then number and life
-- Answers {1} when taken, else {0, ms until the next one becomes free by itself, or -1}.
if free > 0 then
  redis.call('decrby', KEYS[1], 1)
  redis.call('zadd', KEYS[2], ends(ARGV[2]), ARGV[1])
  local ttl = redis.call('pttl', KEYS[1])
  if ttl > 0 then
    redis.call('pexpire', KEYS[2], ttl)
  end
  return done(1)
end
local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
if first[2] and tonumber(first[2]) < never then
  return {0, tonumber(first[2]) - now}
end
return {0, -1}
