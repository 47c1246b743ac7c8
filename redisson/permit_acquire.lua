-- Takes a permit, or sets the lease of one that is taken. Makes the semaphore if there is none.
-- Safe to repeat: a permit is taken by its id.
-- ARGV[3] lease in ms, ARGV[4] permits of a new semaphore, ARGV[5] '1' if the permit is to be new
-- Answers {1, 0} when taken, else {0, ms until the next permit becomes free by itself, or -1}.
if not taken and ARGV[5] ~= '1' then
  return {0, -1}
end
if not taken then
  local free = tonumber(redis.call('get', KEYS[1]))
  if not free then
    free = tonumber(ARGV[4])
    redis.call('set', KEYS[1], free, 'px', ARGV[3])
  end
  if free < 1 then
    local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
    return {0, first[2] and math.min(first[2] - now, 2 ^ 52) or -1}
  end
  redis.call('decrby', KEYS[1], 1)
end
keep(tonumber(ARGV[3]))
return {1, 0}
