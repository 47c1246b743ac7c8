-- Goes before the scripts of the rate limiter that count what was taken.
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
local function leave(value, left, taken, keep)
  redis.call('set', left, value)
  local ttl = keep
  if keep > 0 then
    redis.call('pexpire', KEYS[1], keep)
  else
    ttl = redis.call('pttl', KEYS[1])
  end
  if ttl > 0 then
    redis.call('pexpire', left, ttl)
    redis.call('pexpire', taken, ttl)
  end
end
