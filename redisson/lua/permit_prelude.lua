-- What the scripts of the lock kind Permit begin with: permits whose time is over become free.
-- KEYS[1] free permits, KEYS[2] taken permits with the end of each, KEYS[3] mark of a semaphore that was made here
-- ARGV[1] id of the permit, 16 bytes, ARGV[2] channel, last ARGV publish or spublish
local over = redis.call('zremrangebyscore', KEYS[2], '-inf', now)
if over > 0 and redis.call('exists', KEYS[1]) == 1 then
  local free = redis.call('incrby', KEYS[1], over)
  if free > 0 then
    redis.call(ARGV[#ARGV], ARGV[2], free)
  end
end
local taken = redis.call('zscore', KEYS[2], ARGV[1])

-- keep makes the permit last at least as long as the lease, and returns how long it lasts. A semaphore that was made here
-- lasts as long as its permits.
local function keep(lease)
  local left = math.max((taken or 0) - now, lease)
  redis.call('zadd', KEYS[2], string.format('%.0f', now + left), ARGV[1])
  local ttl = redis.call('pttl', KEYS[1])
  if redis.call('exists', KEYS[3]) == 1 then
    ttl = math.max(ttl, left)
    redis.call('pexpire', KEYS[1], ttl)
    redis.call('pexpire', KEYS[3], ttl)
  end
  if ttl > 0 then
    redis.call('pexpire', KEYS[2], ttl)
  elseif redis.call('pttl', KEYS[2]) > 0 then -- of the semaphore's that has ended: with it, permits would go that nobody counts
    redis.call('pexpire', KEYS[2], 922337203685477)
  end
  return math.min(left, 2 ^ 52)
end

