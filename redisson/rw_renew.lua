-- Prolongs the read and write holds that this holder still has, with its own timeout keys. Never makes a hold, and never
-- shortens the lease of the lock.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] reads, ARGV[4] writes that the holder should have,
-- ARGV[5] the holder's timeout keys up to their number
-- Answers {1} when all are renewed, {0} when one side is not there any more.
local reads = redis.call('hget', KEYS[1], ARGV[1])
if ARGV[3] ~= '0' and not reads or
   ARGV[4] ~= '0' and redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 0 then
  return {0}
end
for n = 1, tonumber(reads or 0) do
  redis.call('set', ARGV[5] .. ':' .. n, '1', 'px', ARGV[2])
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return {1}
