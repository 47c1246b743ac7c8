-- Sets the time to live of a lock that this holder still has. Never makes a lock.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms
-- Answers {1} when renewed, {0} when this holder does not have the lock.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return {0}
end
redis.call('pexpire', KEYS[1], ARGV[2])
return {1}
