-- Makes the lease of a lock at least so long.
-- Safe to repeat, and late: it makes no lock and shortens no lease.
-- KEYS[1] lock   ARGV[1] value, ARGV[2] lease in ms
-- Answers {1, lease left in ms} when done, {0} when this value does not have the lock, {-1, type} when the key holds something else.
local has, odd = value()
if odd then
  return odd
end
if has ~= ARGV[1] then
  return other(has, {0})
end
local left, lease = redis.call('pttl', KEYS[1]), tonumber(ARGV[2])
if left < lease then
  redis.call('pexpire', KEYS[1], lease)
  left = lease
end
return {1, left}
