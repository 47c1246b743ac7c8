-- Removes an object with all of its keys.
-- KEYS its keys, then the receipt   ARGV the receipt
-- Answers {how many of the keys there were}.
return done(redis.call('del', unpack(KEYS, 1, #KEYS - 1)))
