-- Takes a holder away, from the lock and from the queue, and notifies the head of the queue on a channel of its own if it is
-- its turn. The lock may be kept by an heir for a while; then the head learns how long.
-- Safe to repeat.
-- ARGV[1] holder, ARGV[2] patience in ms, ARGV[3] channel, to which the head's id is added, ARGV[4] heir, ARGV[5] how long it
-- keeps the lock in ms or 0, last ARGV publish or spublish
-- Answers {1} when done, {0} when this holder does not have the lock.
local deadline = redis.call('zscore', KEYS[3], ARGV[1])
if deadline then
  advance(redis.call('zrangebyscore', KEYS[3], '(' .. deadline, '+inf'), ARGV[2])
  redis.call('zrem', KEYS[3], ARGV[1])
end
if deadline or not whole() then
  redis.call('lrem', KEYS[2], 0, ARGV[1])
end
local head = purge()
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if mine then
  redis.call('del', KEYS[1])
  if ARGV[5] ~= '0' then
    redis.call('hset', KEYS[1], ARGV[4], 1)
    redis.call('pexpire', KEYS[1], ARGV[5])
  end
end
if head and (mine or redis.call('exists', KEYS[1]) == 0) then
  redis.call(ARGV[#ARGV], ARGV[3] .. ':' .. head, '0')
end
return mine and {1} or unchanged({0})
