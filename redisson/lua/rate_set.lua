-- Sets the rate.
-- KEYS[1] settings, KEYS[2] what is left, KEYS[3] what was taken, KEYS[4], KEYS[5] the same for this client alone
-- ARGV[1] rate, ARGV[2] interval in ms, ARGV[3] type, ARGV[4] life of the keys in ms or 0, ARGV[5] 'try' only where there is
-- none, 'set' anyway, 'update' only where there is one, 'keep' like update but with what was taken; then the receipt
-- Answers {1} when set, else {0}.
local how = ARGV[5]
if how == 'try' and known or (how == 'update' or how == 'keep') and not known then
  return done(0)
end
redis.call('hset', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'type', ARGV[3], 'keepAliveTime', ARGV[4])
if ARGV[4] ~= '0' then
  redis.call('pexpire', KEYS[1], ARGV[4])
elseif keep > 0 then
  redis.call('persist', KEYS[1]) -- Redisson leaves the end that the former rate had
end
if how == 'try' then
  return done(1)
end
if how ~= 'keep' or kind ~= ARGV[3] then
  redis.call('del', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
  return done(1)
end

-- What is left may be less than nothing where the rate is lower now. Redisson has 0 there, and then gives back what was taken
-- under the former rate permit by permit, so that the former rate goes on for as long as there is no pause. What was taken more
-- than the new interval ago is there again as soon as somebody asks.
keep = tonumber(ARGV[4])
redis.call('persist', taken)
leave(ARGV[1] - permits(redis.call('zrange', taken, 0, -1)))
return done(1)
