-- Looks what is at a key that holds no lock.
-- KEYS[1] the key
-- Answers {1} for a number, as a semaphore has, {2} for another string, {0} for what is no string.
local value = redis.pcall('get', KEYS[1])
if type(value) ~= 'string' then
  return {0}
end
return {tonumber(value) and 1 or 2}
