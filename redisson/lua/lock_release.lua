-- Takes a holder away. The lock is free then, unless an heir is to keep it for a while. Somebody is woken if there is a channel, to take the
-- lock or to learn how long it is kept.
-- Safe to repeat: a second run finds nothing.
-- KEYS[1] lock, KEYS[2] wake list or nothing   ARGV[1] holder, ARGV[2] channel or nothing, ARGV[3] heir, ARGV[4] how long it keeps the lock
-- in ms or 0, last ARGV publish or spublish
-- Answers how many were notified when done, {0} when this holder does not have the lock.
local call, key, channel = redis.call, KEYS[1], ARGV[2]
if call('hexists', key, ARGV[1]) == 0 then
  call('hdel', key, '') -- changes nothing; see scripts.go
  return {0}
end
call('del', key)
if ARGV[4] ~= '0' then
  call('hset', key, ARGV[3], '1')
  call('pexpire', key, ARGV[4])
end
return channel ~= '' and announce(KEYS[2], ARGV[#ARGV], channel, ARGV[4] ~= '0') or 0
