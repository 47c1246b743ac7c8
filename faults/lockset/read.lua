-- Reads a set, and raises its fence to the token of the reader. Without the latter, an earlier holder could still write between
-- this read and the write that follows, which would undo it.
-- KEYS: the set. ARGV: token, 0 for none.
-- Safe to repeat. Answers the elements, a line each, or false if the fence is higher than the token.
local token = tonumber(ARGV[1])
if token > 0 then
	if token < tonumber(redis.call('hget', KEYS[1], 'token') or 0) then return false end
	redis.call('hset', KEYS[1], 'token', ARGV[1])
end
return redis.call('hget', KEYS[1], 'elements') or ''
