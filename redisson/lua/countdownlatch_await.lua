-- Looks whether a latch is shut.
-- KEYS[1] latch
-- Answers {1} while there is something to wait for, else {0}.
local value = redis.call('get', KEYS[1])
if value then
  redis.call('set', KEYS[1], '', 'nx') -- changes nothing, nor does the other one; see scripts.go
else
  redis.call('del', KEYS[1])
end
local count = tonumber(value or '0')
assert(count and count == count, 'value of the latch is not a number')
return {count > 0 and 1 or 0}
