-- Gives the permits of all levels back, or to an heir who keeps them for a while. Who waits for one is woken, to take it or to learn how long it
-- is kept. Removes a semaphore that was made here and that nobody uses any more.
-- Safe to repeat: a second run finds nothing.
-- KEYS behind those of the levels the wake list of each, or none   ARGV[3] how long the heir keeps the permits in ms or 0, ARGV[4] id of the heir
-- Answers how many were notified of the first level when done, {0} when a permit was not taken: the others are given back nevertheless.
for i, level in ipairs(levels) do
  if redis.call('zrem', level.taken, ARGV[1]) == 1 then
    local free -- without a number, it is the next acquire that counts what is free
    if ARGV[3] ~= '0' then
      level.held = nil
      keep(level, ARGV[4], tonumber(ARGV[3]))
    else
      free = redis.call('exists', level.free) == 1 and redis.call('incrby', level.free, 1) or 1
      if redis.call('zcard', level.taken) == 0 and redis.call('exists', level.mark) == 1 then
        redis.call('del', level.free, level.mark)
      end
    end
    level.told = (not free or free > 0) and announce(KEYS[3 * #levels + i], ARGV[#ARGV], level.channel, not free, false, free)
  end
end
return gone and {0} or levels[1].told or 0
