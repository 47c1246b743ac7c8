-- Sets the rate, or only where there is none.
-- KEYS[1..5] as above   ARGV[1] rate, ARGV[2] interval in ms, ARGV[3] type, ARGV[4] life of the keys in ms or 0,
-- ARGV[5] '1' to leave a rate that is set alone, then the receipt
-- Answers {1} when set, else {0}.
local key, keep = KEYS[1], ARGV[4]
local set = redis.call('hexists', key, 'type') == 0
if ARGV[5] == '1' then
  redis.call('hsetnx', key, 'rate', ARGV[1])
  redis.call('hsetnx', key, 'interval', ARGV[2])
  redis.call('hsetnx', key, 'keepAliveTime', keep)
  redis.call('hsetnx', key, 'type', ARGV[3])
  if not set then
    return done(0)
  end
else
  redis.call('hset', key, 'rate', ARGV[1], 'interval', ARGV[2], 'keepAliveTime', keep, 'type', ARGV[3])
  redis.call('persist', key)
  redis.call('del', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
end
if keep ~= '0' then
  redis.call('pexpire', key, keep)
end
return done(1)
