-- Goes before the scripts of the rate limiter: finds out what may be taken now.
-- KEYS[1] settings, KEYS[2] what is left, KEYS[3] what was taken, KEYS[4], KEYS[5] the same for this client alone
local rate, interval, kind, keep = unpack(redis.call('hmget', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime'))
local known = rate and interval and kind -- without that, the rest means nothing
-- Java may set a rate up to 2^63 to mean no limit. Such numbers would be written with an exponent, which Redis does not count with.
rate, interval, keep = math.min(rate or 0, 2 ^ 53), math.min(interval or 0, 2 ^ 53), tonumber(keep or 0)
local left, taken = KEYS[2], KEYS[3]
if kind == '1' then
  left, taken = KEYS[4], KEYS[5]
end

-- permits adds up the numbers at the end of members: 4 bytes, the lowest first.
local function permits(members)
  local sum = 0
  for _, member in ipairs(members) do
    local a, b, c, d = string.byte(member, -4, -1)
    sum = sum + a + 256 * (b + 256 * (c + 256 * d))
  end
  return sum
end

-- leave sets what is left. All keys live as long as the settings say, from now on, or else as long as the settings live.
local function leave(value)
  redis.call('set', left, value)
  if keep > 0 then
    redis.call('pexpire', KEYS[1], keep)
  end
  local ttl = redis.call('pttl', KEYS[1])
  if ttl > 0 then
    redis.call('pexpire', left, ttl)
    redis.call('pexpire', taken, ttl)
  end
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
