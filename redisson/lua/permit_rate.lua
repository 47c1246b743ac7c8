-- Takes one permit of a rate, for a permit of the lock kind Permit. A rate that was set here is what each call says, and remembers what was taken for the
-- longest interval that was said; another one stays as it is.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] interval in ms, ARGV[3] id of the permit
-- Returns 0 when it was taken, which it is once for an id, or else how many ms to wait.
if not known or redis.call('hget', KEYS[1], 'latchkey') then
  local permitted, every = tonumber(ARGV[1]), tonumber(ARGV[2])
  if not known or rate ~= permitted or interval ~= every or keep > every then
    rate, interval, keep, left, taken = permitted, every, math.max(keep, every), KEYS[2], KEYS[3]
    redis.call('hset', KEYS[1], 'rate', rate, 'interval', interval, 'type', '0', 'keepAliveTime', keep, 'latchkey', '1')
    value = rate - permits(redis.call('zrangebyscore', taken, '(' .. string.format('%.0f', now - interval), '+inf'))
  end
  past = now - keep
end
local member = '\16' .. ARGV[3] .. '\1\0\0\0'
if redis.call('zscore', taken, member) then
  return 0
end
redis.call('zremrangebyscore', taken, '-inf', past)
if value < 1 then
  leave(value)
  local taken = redis.call('zrangebyscore', taken, '(' .. string.format('%.0f', now - interval), '+inf', 'withscores', 'limit', 0 - value, 1)
  return math.max(1, interval - now + (taken[2] or now)) -- until the last has come back of those that are taken too many
end
redis.call('zadd', taken, now, member)
leave(value - 1)
return 0
