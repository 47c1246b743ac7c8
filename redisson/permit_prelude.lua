-- What the scripts of the lock kind Permit begin with: permits whose time is over become free.
-- KEYS[1] free permits, KEYS[2] taken permits with the end of each   ARGV[1] id of the permit, 16 bytes, ARGV[2] channel,
-- last ARGV publish or spublish
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local over = redis.call('zcount', KEYS[2], '-inf', now)
if over > 0 and redis.call('exists', KEYS[1]) == 1 then
  redis.call('zremrangebyscore', KEYS[2], '-inf', now)
  local free = redis.call('incrby', KEYS[1], over)
  if free > 0 then
    redis.call(ARGV[#ARGV], ARGV[2], free)
  end
end
local taken = redis.call('zscore', KEYS[2], ARGV[1])

-- keep sets the end of the permit. A semaphore that was made here lasts as long as its permits.
local function keep(lease)
  redis.call('zadd', KEYS[2], string.format('%.0f', now + lease), ARGV[1])
  local ttl = redis.call('pttl', KEYS[1])
  if ttl >= 0 then
    ttl = string.format('%.0f', math.max(ttl, lease))
    redis.call('pexpire', KEYS[1], ttl)
    redis.call('pexpire', KEYS[2], ttl)
  end
end

