-- Goes before the scripts of the expirable semaphore: permits whose time is over become free.
-- KEYS[1] free permits, KEYS[2] taken permits   ARGV[1] channel
local never = 922337203685477 -- the time that stands for no end
local free = tonumber(redis.call('get', KEYS[1]) or '0')
assert(free, 'value of the semaphore is not a number')
local over = redis.call('zcount', KEYS[2], '-inf', now)
if over > 0 then
  free = free + over
  -- Before the change, so that a user who may not publish changes nothing. Nobody can look before the script has ended.
  if free > 0 then
    redis.call(ARGV[#ARGV], ARGV[1], free)
  end
  redis.call('zremrangebyscore', KEYS[2], '-inf', now)
  redis.call('incrby', KEYS[1], over)
end
-- ends is when a lease of so many ms is over, of 0 never.
local function ends(lease)
  return lease == '0' and never or now + tonumber(lease)
end
