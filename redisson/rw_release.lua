-- Sets the read and the write count of this holder of a read/write lock. A writer that goes on reading lets readers in
-- without a message; a lock that nobody has any more is free, and its waiters are told: all, if it was written.
-- Safe to repeat: a second run finds the same counts, or nothing.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] remaining reads, ARGV[3] remaining writes, ARGV[4] lease in ms for
-- these, ARGV[5] the timeout keys of all holders up to the holder's id, ARGV[6] message if there is no lock,
-- ARGV[7] channel, last ARGV publish or spublish
-- Answers {1} when done, {0} when this holder does not have the lock.
local writer = ARGV[1] .. ':write'
if redis.call('hexists', KEYS[1], 'mode') == 0 then
  redis.call(ARGV[#ARGV], ARGV[7], ARGV[6])
  return {0}
end
local reads = tonumber(redis.call('hget', KEYS[1], ARGV[1]) or 0)
local writes = tonumber(redis.call('hget', KEYS[1], writer) or 0)
if reads + writes == 0 then
  return {0}
end
local function timeout(holder, n)
  return ARGV[5] .. ':' .. holder .. ':rwlock_timeout:' .. n
end
for n = reads, ARGV[2] + 1, -1 do
  redis.call('del', timeout(ARGV[1], n))
end
if ARGV[2] == '0' then
  redis.call('hdel', KEYS[1], ARGV[1])
elseif tonumber(ARGV[2]) < reads then
  redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
end
if ARGV[3] ~= '0' then
  if tonumber(ARGV[3]) < writes then
    redis.call('hset', KEYS[1], writer, ARGV[3])
    redis.call('pexpire', KEYS[1], ARGV[4])
  end
  return {1}
end
redis.call('hdel', KEYS[1], writer)

local free = redis.call('hlen', KEYS[1]) == 1
if not free and writes > 0 then
  redis.call('hset', KEYS[1], 'mode', 'read')
  return {1}
end
if not free and redis.call('hget', KEYS[1], 'mode') == 'read' then
  local longest = -3
  local fields = redis.call('hgetall', KEYS[1])
  for i = 1, #fields, 2 do
    for n = 1, tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('pttl', timeout(fields[i], n)))
    end
  end
  free = longest <= 0
  if not free then
    redis.call('pexpire', KEYS[1], longest)
  end
end
if free then
  redis.call('del', KEYS[1])
  redis.call(ARGV[#ARGV], ARGV[7], writes > 0 and '1' or '0')
end
return {1}
