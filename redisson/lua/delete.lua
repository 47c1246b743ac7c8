-- Removes an object with all of its keys.
-- KEYS its keys, then the receipt   ARGV for a latch its channel, then the receipt
-- Answers {how many of the keys there were}.
if #ARGV > 4 and redis.call('exists', KEYS[1]) == 1 then
  redis.call(ARGV[#ARGV], ARGV[1], '1')
end
return done(redis.call('del', unpack(KEYS, 1, #KEYS - 1)))
