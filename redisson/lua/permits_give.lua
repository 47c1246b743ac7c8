-- Goes before the scripts that give permits back.
-- give frees the permits with the ids ARGV[first..last], and returns 1; or 0, and changes nothing, when nobody has one of them.
-- As in Redisson, the message for one permit is how many are free now, and for several how many were given back.
local function give(first, last)
  for i = first, last do
    if not redis.call('zscore', KEYS[2], ARGV[i]) then
      return 0
    end
  end
  local n = last - first + 1
  redis.call(ARGV[#ARGV], ARGV[1], n > 1 and n or math.max(0, free + 1))
  for i = first, last do
    redis.call('zrem', KEYS[2], ARGV[i])
  end
  redis.call('incrby', KEYS[1], n)
  return 1
end
