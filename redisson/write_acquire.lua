-- Takes the write side of a read/write lock, or sets the write count of this holder. Whoever only reads does not become a
-- writer. A re-entry adds its lease to what is left, as Redisson does.
-- Safe to repeat: the count is set to what the caller wants, and a lease is added only if the count changes.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] wanted count
-- Answers {1, 0} when held with that count, else {0, PTTL of the lock}.
local writer = ARGV[1] .. ':write'
local count = redis.call('hget', KEYS[1], writer)
if not count and (ARGV[3] ~= '1' or redis.call('exists', KEYS[1]) == 1) then
  return {0, redis.call('pttl', KEYS[1])}
end
local lease = tonumber(ARGV[2])
if not count then
  redis.call('hset', KEYS[1], 'mode', 'write')
elseif count ~= ARGV[3] then
  lease = lease + math.max(redis.call('pttl', KEYS[1]), 0)
end
redis.call('hset', KEYS[1], writer, ARGV[3])
redis.call('pexpire', KEYS[1], string.format('%.0f', lease))
return {1, 0}
