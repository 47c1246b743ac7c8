-- Takes a permit. Makes the semaphore if there is none. One that was made here has as many permits as each call says. Its number is that
-- of the last call that took one, and so never negative: each permit that comes back is published.
-- Safe to repeat: a permit is taken by its id, and its lease does not get shorter.
-- ARGV[3] lease in ms, ARGV[4] permits of a semaphore that is made here
-- Answers {1, lease left in ms, 0} when taken, {0, ms until the next permit becomes free by itself, or -1} when there is none,
-- {-1, kind} when the key is held exclusively (0), for reading (2) or writing (3).
if not taken then
  local free = redis.pcall('get', KEYS[1])
  if type(free) == 'table' then
    local mode = redis.call('hget', KEYS[1], 'mode')
    return {-1, mode == 'read' and 2 or mode and 3 or 0}
  end
  if free then
    free = assert(tonumber(free), 'value is not a number')
    local more = redis.call('exists', KEYS[3]) == 1 and ARGV[4] - redis.call('zcard', KEYS[2]) - free or 0
    free = free + more
    if more ~= 0 and free > 0 then
      redis.call('incrby', KEYS[1], more)
    end
  else
    free = ARGV[4] - redis.call('zcard', KEYS[2])
    local last = redis.call('zrange', KEYS[2], -1, -1, 'withscores') -- there is one if only the number was removed
    local life = string.format('%.0f', math.max(ARGV[3], (last[2] or 0) - now))
    redis.call('set', KEYS[1], math.max(free, 0), 'px', life)
    redis.call('set', KEYS[3], 1, 'px', life)
  end
  if free < 1 then
    local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
    return {0, first[2] and math.min(first[2] - now, 2 ^ 52) or -1}
  end
  redis.call('decrby', KEYS[1], 1)
end
return {1, keep(tonumber(ARGV[3])), 0}
