-- Takes one permit of a rate, for a permit of the lock kind Permit. A rate that was set here is what each call says; another one stays as it is.
-- KEYS[1..5] as above   ARGV[1] permits, ARGV[2] interval in ms, ARGV[3] id of the permit
-- Returns 0 when it was taken, which it is once for an id, or else how many ms to wait.
if not known or redis.call('hget', KEYS[1], 'latchkey') and (rate ~= tonumber(ARGV[1]) or interval ~= tonumber(ARGV[2])) then
  rate, interval, keep, left, taken = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[2]), KEYS[2], KEYS[3]
  redis.call('hset', KEYS[1], 'rate', rate, 'interval', interval, 'type', '0', 'keepAliveTime', keep, 'latchkey', '1')
  past, current = now - interval, '(' .. string.format('%.0f', now - interval)
  value = rate - permits(redis.call('zrangebyscore', taken, current, '+inf'))
end
local member = '\16' .. ARGV[3] .. '\1\0\0\0'
if redis.call('zscore', taken, member) then
  return 0
end
redis.call('zremrangebyscore', taken, '-inf', past)
if value < 1 then
  leave(value)
  local back = redis.call('zrange', taken, 0 - value, 0 - value, 'withscores') -- of all that are taken now, the last that has to come back
  return math.max(1, interval - now + (back[2] or now))
end
redis.call('zadd', taken, now, member)
leave(value - 1)
return 0
