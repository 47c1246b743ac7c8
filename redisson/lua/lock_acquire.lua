-- Takes a free lock.
-- Safe to repeat: a holder that is there keeps its count, and its lease does not get shorter.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] holder, ARGV[2] lease in ms; with a token, ARGV[3] how long it is
-- kept after the lease in ms, 0 for ever
-- Answers {1, lease left in ms, token or 0} when held, {0, time to live in ms} when others hold it, {-1, kind} when it is
-- held for reading (2) or writing (3).
local before = redis.call('pttl', KEYS[1])
local free = before == -2
if not free and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  local mode = redis.call('hget', KEYS[1], 'mode')
  if mode then
    return {-1, mode == 'read' and 2 or 3}
  end
  return {0, before}
end
local token = KEYS[2] and count() or 0
if type(token) == 'table' then
  return token
end
local left = tonumber(ARGV[2])
if free then
  redis.call('hset', KEYS[1], ARGV[1], 1)
end
if before < left then
  redis.call('pexpire', KEYS[1], left)
else
  left = before
end
if KEYS[2] then
  keep(ARGV[3], left)
end
return {1, left, token}
