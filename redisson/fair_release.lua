-- Sets the hold count of this holder of a fair lock; at 0 the lock is free, the holder is in no queue, and the head of the
-- queue is told on a channel of its own. With count 0 it also serves a holder that may be in the queue only.
-- Safe to repeat.
-- ARGV[1] holder, ARGV[2] remaining count, ARGV[3] lease in ms above 0, ARGV[4] patience in ms, ARGV[5] channel, to which
-- the head's id is added, last ARGV publish or spublish
-- Answers {1} when done, {0} when this holder does not have the lock.
if ARGV[2] == '0' then
  local behind = false
  for _, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
    if waiter == ARGV[1] then
      behind = true
    elseif behind and redis.call('zscore', KEYS[3], waiter) then
      redis.call('zincrby', KEYS[3], -tonumber(ARGV[4]), waiter)
    end
  end
  redis.call('zrem', KEYS[3], ARGV[1])
  redis.call('lrem', KEYS[2], 0, ARGV[1])
end
local head = purge()
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if mine and ARGV[2] ~= '0' then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
  redis.call('pexpire', KEYS[1], ARGV[3])
  return {1}
end
if mine then
  redis.call('del', KEYS[1])
end
if head and redis.call('exists', KEYS[1]) == 0 then
  redis.call(ARGV[#ARGV], ARGV[5] .. ':' .. head, '0')
end
return {mine and 1 or 0}
