-- Takes the read side of a read/write lock.
-- Safe to repeat: a reader that is there keeps its count, and its lease does not get shorter.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] the holder's timeout key
-- Answers {1, lease left in ms, 0} when held, {0, time to live in ms} when others write, {-1, 0} when it is no read/write lock.
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' then
  redis.call('hdel', KEYS[1], '') -- changes nothing; see scripts.go
  return {0, redis.call('pttl', KEYS[1])}
end
local before = redis.call('pttl', ARGV[3]) -- fails before anything has changed if this slot of a cluster is on the move
if not mode then
  if redis.call('exists', KEYS[1]) == 1 then
    return {-1, 0}
  end
  redis.call('hset', KEYS[1], 'mode', 'read')
elseif before == -2 then
  redis.call('exists', KEYS[1], ARGV[3]) -- so does this, at the new master
end
redis.call('hsetnx', KEYS[1], ARGV[1], 1)
local left = tonumber(ARGV[2])
if before < left then
  redis.call('set', ARGV[3], '1', 'px', left)
else
  left = before
end
extend(redis.call('pttl', KEYS[1]), left)
return {1, left, 0}
