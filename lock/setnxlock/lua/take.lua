-- Takes a free lock.
-- Safe to repeat, and late: a lock that has this value already keeps it, and its lease does not get shorter.
-- KEYS[1] lock   ARGV[1] value, ARGV[2] lease in ms
-- Answers {1} when this value has the lock, {0, time to live in ms or -1} when another one has it, {-1, type} when the key holds
-- something else.
local has, odd = value()
if odd then
  return odd
end
if not has then
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  return {1}
end
local left = redis.call('pttl', KEYS[1])
if has ~= ARGV[1] then
  return other(has, {0, left})
end
if left < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return {1}
