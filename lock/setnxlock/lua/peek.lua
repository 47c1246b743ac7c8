-- Looks at a lock.
-- KEYS[1] lock
-- Answers {1} when it is free, {0, time to live in ms or -1} when it is held, {-1, type} when the key holds something else.
local has, odd = value()
if odd then
  return odd
end
if not has then
  return {1}
end
return {0, redis.call('pttl', KEYS[1])}
