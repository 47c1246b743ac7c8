-- Takes the read side of a read/write lock, or sets the read count of this holder.
-- Safe to repeat: the count is set to what the caller wants.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] wanted count, ARGV[4] '1' if the holder has the lock already,
-- for reading or writing, ARGV[5] the holder's timeout keys up to their number
-- Answers {1, 0} when held with that count, else {0, PTTL of the lock}.
local mode = redis.call('hget', KEYS[1], 'mode')
local reads = redis.call('hexists', KEYS[1], ARGV[1]) == 1
local writes = redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 1
if ARGV[4] == '1' and not reads and not writes then
  return {0, redis.call('pttl', KEYS[1])}
end
if mode == 'write' and not writes then
  return {0, redis.call('pttl', KEYS[1])}
end
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
end
redis.call('hset', KEYS[1], ARGV[1], ARGV[3])
redis.call('set', ARGV[5] .. ':' .. ARGV[3], '1', 'px', ARGV[2])
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return {1, 0}
