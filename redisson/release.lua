-- Sets the hold count of this holder; at 0 the lock is free and, if there is a channel, one waiter a process is told.
-- Safe to repeat: a second run finds the same count, or nothing.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] remaining count, ARGV[3] lease in ms above 0, ARGV[4] channel or nothing,
-- last ARGV publish or spublish
-- Answers {1} when done, {0} when this holder does not have the lock.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return {0}
end
if ARGV[2] ~= '0' then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
  redis.call('pexpire', KEYS[1], ARGV[3])
else
  redis.call('del', KEYS[1])
  if ARGV[4] ~= '' then
    redis.call(ARGV[#ARGV], ARGV[4], '0')
  end
end
return {1}
