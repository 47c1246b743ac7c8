-- Looks whether a call of this client is still the newest at a lock, and if so keeps that for longer. Where it has been forgotten who
-- is the newest, as after a loss of data, the first to look is.
-- Safe to repeat.
-- KEYS[1] the newest   ARGV[1] the client, ARGV[2] how long it is kept in ms
-- Answers {1} if it is, {0} if another client has come since.
local newest = redis.call('get', KEYS[1])
if newest and newest ~= ARGV[1] then
  redis.call('set', KEYS[1], '', 'nx') -- changes nothing; see scripts.go
  return {0}
end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return {1}
