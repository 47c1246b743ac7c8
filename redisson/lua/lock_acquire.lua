-- Takes a free lock.
-- Safe to repeat: a holder that is there keeps its count, and its lease does not get shorter.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] holder, ARGV[2] lease in ms; with a token, ARGV[3] how long it is
-- kept after the lease in ms, 0 for ever
-- Answers the lease left in ms when held, with a token {1, lease left in ms, token}; {0, time to live in ms} when others hold it;
-- {-1, kind} when it is held for reading (2) or writing (3).
local call, key, holder = redis.call, KEYS[1], ARGV[1]
local left = call('pttl', key)
local free = left == -2
if not free and call('hexists', key, holder) == 0 then
  call('hdel', key, '') -- changes nothing; see scripts.go
  local mode = call('hget', key, 'mode')
  if mode then
    return {-1, mode == 'read' and 2 or 3}
  end
  return {0, left}
end
local wait = free and KEYS.barred and KEYS.barred(1, 1)
if wait then
  call('hdel', key, '')
  return {0, wait}
end
local token = KEYS[2] and count() or 0
if type(token) == 'table' then
  return token
end
if free then
  call('hset', key, holder, '1')
end
return last(left, ARGV[2], token, ARGV[3])
