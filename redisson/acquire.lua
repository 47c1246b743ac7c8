-- Takes a free lock, or sets the hold count of a lock that this holder has.
-- Safe to repeat: the count is set to what the caller wants, never added to.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] wanted count
-- Answers {1, token} when held with that count (without a token key: {1, 0}), else {0, PTTL of the lock}.
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if mine or (ARGV[3] == '1' and redis.call('exists', KEYS[1]) == 0) then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[3])
  redis.call('pexpire', KEYS[1], ARGV[2])
  return {1, KEYS[2] and redis.call('incr', KEYS[2]) or 0}
end
return {0, redis.call('pttl', KEYS[1])}
