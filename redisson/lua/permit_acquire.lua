-- Takes a permit of each level, or none. Makes the semaphores that are not there. The number of one that was made here is that of the last call that took
-- a permit, and so never negative: each permit that comes back is published. Last, takes a permit of a rate, if there is one.
-- Safe to repeat: permits are taken by their id, and their lease does not get shorter.
-- KEYS behind those of the levels five of the rate, as in rate.lua   ARGV[3] lease in ms, ARGV[4] permits of a rate that is set here, or 0,
-- ARGV[5] its interval in ms
-- Answers {1, lease left in ms, 0} when taken; {0, ms until the next permit becomes free by itself, or -1, level that has none, and one more than there are
-- levels for the rate}; {-1, kind} when a key is held exclusively (0), for reading (2) or writing (3).
local frees, lease, last = {}, nil, 3 * #levels
for i, level in ipairs(levels) do
  local free, other = count(level)
  if other then
    return other
  end
  local first = not level.held and free < 1 and redis.call('zrange', level.taken, 0, 0, 'withscores')
  local wait = first and (first[2] and math.min(first[2] - now, 2 ^ 52) or -1)
  wait = wait or not level.held and KEYS.barred and KEYS.barred(3 * i - 1, free)
  if wait then
    return {0, wait, i}
  end
  frees[i] = free
end
local wait = ARGV[4] ~= '0' and (gone or last == 0) and pace({unpack(KEYS, last + 1, last + 5)}, {ARGV[4], ARGV[5], ARGV[1]}) or 0
if wait > 0 then
  return {0, wait, #levels + 1}
end
for i, level in ipairs(levels) do
  if level.made and not level.held then
    redis.call('set', level.free, frees[i] - 1, 'keepttl')
    redis.call('set', level.mark, 1, 'keepttl')
  elseif not level.held then
    redis.call('decrby', level.free, 1)
  end
  local left = keep(level, ARGV[1], tonumber(ARGV[3]))
  lease = math.min(lease or left, left)
end
return {1, lease or tonumber(ARGV[3]), 0}
