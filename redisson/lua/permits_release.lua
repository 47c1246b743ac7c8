-- Gives permits back, all or none. With a receipt, their request is kept from taking permits if it is still on its way. Safe to
-- repeat. Redisson tells the new number of free permits for one, and how many were given back for several.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] receipt or nothing, ARGV[3] number, ARGV[4] life, ARGV[5...] ids, last ARGV publish or
-- spublish
-- Answers {1} when given back, {0} when nobody has one of them.
local n = #ARGV - 5
if ARGV[2] ~= '' then
  redis.call('set', ARGV[2], ARGV[3] .. ' 0', 'px', ARGV[4])
end
for i = 5, 4 + n do
  if not redis.call('zscore', KEYS[2], ARGV[i]) then
    return {0}
  end
end
redis.call(ARGV[#ARGV], ARGV[1], n > 1 and n or math.max(0, free + 1))
for i = 5, 4 + n do
  redis.call('zrem', KEYS[2], ARGV[i])
end
redis.call('incrby', KEYS[1], n)
return {1}
