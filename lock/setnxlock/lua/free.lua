-- Frees a lock, at once or after a while. What is freed at once is announced, if there is a channel. The lock is free also if
-- nobody may hear of it, which is an error.
-- Safe to repeat: a second run finds nothing, or keeps the lock for a little longer.
-- KEYS[1] lock   ARGV[1] value, ARGV[2] channel or nothing, ARGV[3] how long the lock is kept in ms, or 0
-- Answers {1} when done, {0} when this value does not have the lock, {-1, type} when the key holds something else.
local has, odd = value()
if odd then
  return odd
end
if has ~= ARGV[1] then
  return other(has, {0})
end
if ARGV[3] ~= '0' then
  redis.call('pexpire', KEYS[1], ARGV[3])
  return {1}
end
redis.call('del', KEYS[1])
if ARGV[2] ~= '' then
  local heard = redis.pcall('publish', ARGV[2], KEYS[1])
  if type(heard) == 'table' then
    return heard
  end
end
return {1}
