-- Reads whose a client is.
-- KEYS[1] the client's own key
-- Answers {1, {what it says, or nothing}}.
local size = redis.pcall('strlen', KEYS[1])
if type(size) ~= 'number' or size == 0 or size > 8192 then
  return {1, {''}}
end
return {1, {redis.call('get', KEYS[1])}}
