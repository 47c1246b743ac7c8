-- Sets the rate.
-- KEYS[1] settings, KEYS[2] what is left, KEYS[3] what was taken, KEYS[4], KEYS[5] the same for this client alone
-- ARGV[1] rate, ARGV[2] interval in ms, ARGV[3] type, ARGV[4] life of the keys in ms or 0, ARGV[5] 'try' only where there is
-- none, 'set' anyway, 'update' only where there is one, 'keep' like update but with what was taken; then the receipt
-- Answers {1} when set, else {0}.
local key, kind, keep, how = KEYS[1], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local before, kept = unpack(redis.call('hmget', key, 'type', 'keepAliveTime'))
if how == 'try' then
  redis.call('hsetnx', key, 'rate', ARGV[1])
  redis.call('hsetnx', key, 'interval', ARGV[2])
  redis.call('hsetnx', key, 'keepAliveTime', keep)
  redis.call('hsetnx', key, 'type', kind)
  if not before and keep > 0 then
    redis.call('pexpire', key, keep)
  end
  return done(before and 0 or 1)
end
if how ~= 'set' and redis.call('exists', key) == 0 then
  return done(0)
end
redis.call('hset', key, 'rate', ARGV[1], 'interval', ARGV[2], 'type', kind, 'keepAliveTime', keep)
if keep > 0 then
  redis.call('pexpire', key, keep)
elseif kept and tonumber(kept) > 0 then
  redis.call('persist', key) -- Redisson leaves the end that the former rate had
end
if how ~= 'keep' or before ~= kind then
  redis.call('del', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
  return done(1)
end

-- What is left may be less than nothing where the rate is lower now. Redisson has 0 there, and then gives back what was taken
-- under the former rate permit by permit, so that the former rate goes on for as long as there is no pause. What was taken more
-- than the new interval ago is there again as soon as somebody asks.
local left, taken = KEYS[2], KEYS[3]
if kind == '1' then
  left, taken = KEYS[4], KEYS[5]
end
redis.call('persist', taken)
leave(ARGV[1] - permits(redis.call('zrange', taken, 0, -1)), left, taken, keep)
return done(1)
