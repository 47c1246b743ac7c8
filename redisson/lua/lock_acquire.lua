-- Takes a free lock.
-- Safe to repeat: a holder that is there keeps its count, and its lease does not get shorter.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] holder, ARGV[2] lease in ms; with a token, ARGV[3] how long it is
-- kept after the lease in ms, 0 for ever
-- Answers {1, lease left in ms, token or 0} when held, {0, time to live in ms} when others hold it, {-1, kind} when it is
-- held for reading (2) or writing (3).
local left = tonumber(ARGV[2])
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], left)
elseif redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  local before = redis.call('pttl', KEYS[1])
  if before < left then
    redis.call('pexpire', KEYS[1], left)
  else
    left = before
  end
else
  local mode = redis.call('hget', KEYS[1], 'mode')
  if mode then
    return {-1, mode == 'read' and 2 or 3}
  end
  return {0, redis.call('pttl', KEYS[1])}
end
local token = 0
if KEYS[2] then
  token = redis.call('incr', KEYS[2])
  local life = left + ARGV[3]
  if life > left and redis.call('pttl', KEYS[2]) < life then
    redis.call('pexpire', KEYS[2], life)
  end
end
return {1, left, token}
