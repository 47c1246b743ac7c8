-- Takes a fair lock whose turn it is, or gets in line, or stays there.
-- Safe to repeat: a holder that is there keeps its count, its lease does not get shorter, and a waiter stays where it is.
-- ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] patience in ms, ARGV[4] '1' to get in line
-- Answers {1, lease left in ms, 0, {}} when held, {0, how long to wait in ms, {}} when it is another one's turn, {-1, kind, {}} when it
-- is held for reading (2) or writing (3). In {} is the head of the queue, if that may be over: it is another one of the same client, or has a
-- free lock wait.
local patience = tonumber(ARGV[3])
local head, ttl = purge(), redis.call('pttl', KEYS[1])
local free = ttl == -2
if free and (not head or head == ARGV[1]) then
  if head then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], head)
    advance(redis.call('zrange', KEYS[3], 0, -1), patience)
  end
  redis.call('hset', KEYS[1], ARGV[1], 1)
end
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  return {1, extend(ttl, ARGV[2]), 0, {}}
end
local mode = redis.call('hget', KEYS[1], 'mode')
if mode then
  return unchanged({-1, mode == 'read' and 2 or 3, {}})
end
if free then -- it is the turn of the head, for as long as its deadline lets it
  ttl = redis.call('zscore', KEYS[3], head) - now
end
local doubtful, client = {}, string.match(ARGV[1], '^.*:')
if head and head ~= ARGV[1] and (free or string.sub(head, 1, #client) == client) then
  doubtful[1] = head
end
if ARGV[4] ~= '1' then
  return unchanged({0, ttl, doubtful})
end

-- The deadline is that of the waiter ahead, or now, and the patience on top of it. A waiter that comes again before it is over
-- is alive, and gets it anew. Redisson adds the lease of the lock to the first one, as its waiters do not come again.
local deadline = redis.call('zscore', KEYS[3], ARGV[1])
if deadline and deadline - now >= patience then
  return unchanged({0, ttl, doubtful})
end
local place = (deadline or not whole()) and redis.call('lpos', KEYS[2], ARGV[1])
local ahead = place ~= 0 and redis.call('lindex', KEYS[2], (place or 0) - 1)
local before = ahead and redis.call('zscore', KEYS[3], ahead)
before = before and tonumber(before) or now
local anew = math.max(before + patience, tonumber(deadline or 0))
redis.call('zadd', KEYS[3], string.format('%.0f', anew), ARGV[1])
if not place then
  redis.call('rpush', KEYS[2], ARGV[1])
end
return {0, ttl, doubtful}
