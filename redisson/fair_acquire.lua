-- Takes a fair lock whose turn it is, or sets the hold count of one that this holder has, or gets in line.
-- Safe to repeat: the count is set, and who is in line stays where it is.
-- ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] wanted count, ARGV[4] patience in ms, ARGV[5] '1' to get in line
-- Answers {1, 0} when held with that count, else {0, how long to wait in ms}.
local patience = tonumber(ARGV[4])
local head = purge()
local free = redis.call('exists', KEYS[1]) == 0
if free and ARGV[3] == '1' and (not head or head == ARGV[1]) then
  if head then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], head)
    for _, waiter in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
      redis.call('zincrby', KEYS[3], -patience, waiter)
    end
  end
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return {1, 0}
end
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[3])
  redis.call('pexpire', KEYS[1], ARGV[2])
  return {1, 0}
end

local ttl = redis.call('pttl', KEYS[1])
if free then -- it is the turn of the head, for as long as its deadline lets it
  ttl = head and (redis.call('zscore', KEYS[3], head) or now) - now or 0
end
if ARGV[3] ~= '1' or ARGV[5] ~= '1' or redis.call('zscore', KEYS[3], ARGV[1]) then
  return {0, ttl}
end
local last = redis.call('lindex', KEYS[2], -1)
local before = last and last ~= ARGV[1] and redis.call('zscore', KEYS[3], last)
local ahead = before and tonumber(before) - now or math.max(ttl, 0)
if redis.call('zadd', KEYS[3], string.format('%.0f', now + ahead + patience), ARGV[1]) == 1 then
  redis.call('rpush', KEYS[2], ARGV[1])
end
return {0, ttl}
