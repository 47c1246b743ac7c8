-- Goes before the scripts of the rate limiter, after rate_permits: finds out what may be taken now.
-- KEYS[1] settings, KEYS[2] what is left, KEYS[3] what was taken, KEYS[4], KEYS[5] the same for this client alone
local rate, interval, kind, keep = unpack(redis.call('hmget', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime'))
local known = rate and interval and kind -- without that, the rest means nothing
-- Java may set a rate up to 2^63 to mean no limit. Such numbers would be written with an exponent, which Redis does not count with.
rate, interval, keep = math.min(rate or 0, 2 ^ 53), math.min(interval or 0, 2 ^ 53), tonumber(keep or 0)
local left, taken = KEYS[2], KEYS[3]
if kind == '1' then
  left, taken = KEYS[4], KEYS[5]
end
local past, current = now - interval, '(' .. string.format('%.0f', now - interval)
-- What was taken an interval ago is there again, but never more than the rate.
local value = redis.call('get', left)
if not value or redis.call('zcount', taken, current, '+inf') == 0 then
  value = rate
else
  value = tonumber(value) + permits(redis.call('zrangebyscore', taken, '-inf', past))
  if value > rate then
    value = rate - permits(redis.call('zrangebyscore', taken, current, '+inf'))
  end
end
