-- Hands a lock over to another holder of the same client. Nobody is notified.
-- Safe to repeat: when the other one has the lock, its lease does not get shorter.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] the old holder, ARGV[2] the new one, ARGV[3] its lease in ms; with a
-- token, ARGV[4] how long it is kept after the lease in ms, 0 for ever
-- Answers the lease left in ms when done, with a token {1, lease left in ms, token}; {0} when neither has the lock.
local call, key, holder = redis.call, KEYS[1], ARGV[2]
local first = call('hexists', key, ARGV[1]) == 1
if not first and call('hexists', key, holder) == 0 then
  return {0}
end
local token = 0
if KEYS[2] then
  token = not first and tonumber(call('get', KEYS[2])) or count()
  if type(token) == 'table' then
    return token
  end
end
local left = tonumber(ARGV[3])
if first then
  call('del', key)
  call('hset', key, holder, '1')
else
  left = math.max(left, call('pttl', key))
end
call('pexpire', key, left)
if not KEYS[2] then
  return left
end
keep(ARGV[4], left)
return {1, left, token}
