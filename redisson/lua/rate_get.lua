-- Reads the rate.
-- KEYS[1] settings
-- Answers {1, permits, interval in ms, 1 if each client has its own or 0, life of the keys in ms or 0}; {-1} without a rate.
local rate, interval, kind, keep = unpack(redis.call('hmget', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime'))
if not (rate and interval and kind) then
  return {-1}
end
return {1, math.min(rate, 2 ^ 53), math.min(interval, 2 ^ 53), kind == '1' and 1 or 0, math.min(keep or 0, 2 ^ 53)}
