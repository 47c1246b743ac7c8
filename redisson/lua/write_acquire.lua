-- Takes the write side of a read/write lock.
-- Safe to repeat: a writer that is there keeps its count, and its lease does not get shorter.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] the holder's timeout key
-- Answers {1, lease left in ms, 0} when held, {0, time to live in ms} when others read or write, {-1, 0} when it is no
-- read/write lock.
local writer, left = ARGV[1] .. ':write', redis.call('pttl', KEYS[1])
if left == -2 then
  redis.call('exists', ARGV[3]) -- who may not touch it could not release the lock
  redis.call('hset', KEYS[1], 'mode', 'write', writer, 1)
elseif redis.call('hexists', KEYS[1], writer) == 0 then
  redis.call('hdel', KEYS[1], '') -- changes nothing; see scripts.go
  return redis.call('hexists', KEYS[1], 'mode') == 1 and {0, left} or {-1, 0}
end
return {1, extend(left, ARGV[2]), 0}
