-- Hands a lock over to another holder of the same client. Nobody is notified.
-- Safe to repeat: when the other one has the lock, its lease does not get shorter.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] the old holder, ARGV[2] the new one, ARGV[3] its lease in ms; with a
-- token, ARGV[4] how long it is kept after the lease in ms, 0 for ever
-- Answers {1, lease left in ms, token or 0} when done, {0} when neither has the lock.
local first = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if not first and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return {0}
end
local token = 0
if KEYS[2] then
  token = not first and tonumber(redis.call('get', KEYS[2])) or count()
  if type(token) == 'table' then
    return token
  end
end
local left = tonumber(ARGV[3])
if first then
  redis.call('del', KEYS[1])
  redis.call('hset', KEYS[1], ARGV[2], 1)
else
  left = math.max(left, redis.call('pttl', KEYS[1]))
end
redis.call('pexpire', KEYS[1], left)
if KEYS[2] then
  keep(ARGV[4], left)
end
return {1, left, token}
