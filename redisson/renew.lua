-- Prolongs a lock that this holder still has. Never makes one, and never shortens its lease.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms
-- Answers {1} when the lock lasts at least that long, {0} when this holder does not have it.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return {0}
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return {1}
