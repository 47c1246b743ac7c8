-- Takes a holder away from a read/write lock, with all that it reads and writes. A lock that nobody has any more is free,
-- and its waiters are notified: all, if it was written. An heir, a reader or a writer by its id, may keep the lock for a while.
-- Safe to repeat: a second run finds nothing.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] the timeout keys of all holders up to the holder's id, ARGV[3] message if there is
-- no lock, ARGV[4] channel, ARGV[5] heir, ARGV[6] how long it keeps the lock in ms or 0, last ARGV publish or spublish
-- Answers {1} when done, {0} when this holder does not have the lock.
local function timeout(holder, n)
  return ARGV[2] .. ':' .. holder .. ':rwlock_timeout:' .. n
end
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('del', timeout(ARGV[1], 1)) -- it can outlive the lock, after a force unlock or when a lease was cut
  redis.call(ARGV[#ARGV], ARGV[4], ARGV[3])
  return {0}
end
local kept = tonumber(ARGV[6])
local wrote = redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 1
if not wrote and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  redis.call('hdel', KEYS[1], '') -- changes nothing; see scripts.go
  return {0}
end

-- How long others read on. All keys are looked at before anything changes, which fails if this slot of a cluster is on the move: at the old
-- master if a key is missing, and at the new one if it is named together with the lock, which is there.
local longest = 0
local fields = redis.call('hgetall', KEYS[1])
for i = 1, #fields, 2 do
  local holder = fields[i]
  if holder ~= 'mode' and holder ~= ARGV[1] and holder ~= ARGV[1] .. ':write' then
    for n = 1, tonumber(fields[i + 1]) or 0 do
      local left = redis.call('pttl', timeout(holder, n))
      if left == -2 then
        redis.call('exists', KEYS[1], timeout(holder, n))
      end
      longest = math.max(longest, left)
    end
  end
end
redis.call('del', timeout(ARGV[1], 1))
redis.call('hdel', KEYS[1], ARGV[1], ARGV[1] .. ':write')
if kept > 0 then
  redis.call('hset', KEYS[1], ARGV[5], 1)
  if string.sub(ARGV[5], -6) ~= ':write' then
    redis.call('hset', KEYS[1], 'mode', 'read')
    redis.call('set', timeout(ARGV[5], 1), '1', 'px', kept)
  end
  longest = math.max(longest, kept)
end
if longest > 0 then
  redis.call('pexpire', KEYS[1], longest)
else
  redis.call('del', KEYS[1])
end
if longest == 0 or kept > 0 then
  redis.call(ARGV[#ARGV], ARGV[4], wrote and '1' or '0')
end
return {1}
