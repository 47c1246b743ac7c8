-- Removes an object with all of its keys.
-- KEYS its keys   ARGV the receipt
-- Answers {how many of the keys there were}.
return done(redis.call('del', unpack(KEYS)))
