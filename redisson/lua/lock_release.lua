-- Takes a holder away. The lock is free then, unless an heir is to keep it for a while. Waiters are notified if there is a
-- channel: one of each process, to take the lock or to learn how long it is kept.
-- Safe to repeat: a second run finds nothing.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] channel or nothing, ARGV[3] heir, ARGV[4] how long it keeps the lock in ms or 0,
-- last ARGV publish or spublish
-- Answers {1, how many were notified} when done, {0} when this holder does not have the lock.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return {0}
end
redis.call('del', KEYS[1])
if ARGV[4] ~= '0' then
  redis.call('hset', KEYS[1], ARGV[3], 1)
  redis.call('pexpire', KEYS[1], ARGV[4])
end
return {1, ARGV[2] ~= '' and redis.call(ARGV[#ARGV], ARGV[2], '0') or 0}
