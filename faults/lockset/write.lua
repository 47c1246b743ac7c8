-- Writes a set.
-- KEYS: the set. ARGV: token, 0 for none; the elements, a line each.
-- Safe to repeat by the holder of the lock. Answers 1, or 0 if the fence is higher than the token.
local token = tonumber(ARGV[1])
if token > 0 then
	if token < tonumber(redis.call('hget', KEYS[1], 'token') or 0) then return 0 end
	redis.call('hset', KEYS[1], 'token', ARGV[1])
end
redis.call('hset', KEYS[1], 'elements', ARGV[2])
return 1
