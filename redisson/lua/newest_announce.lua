-- Announces a call as the newest at a lock, and notifies those that were announced before.
-- KEYS[1] the newest   ARGV[1] its client, ARGV[2] how long that is kept in ms, ARGV[3] channel, then the receipt
-- Answers {1}.
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
redis.call(ARGV[#ARGV], ARGV[3], '0')
return done(1)
