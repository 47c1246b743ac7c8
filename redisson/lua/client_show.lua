-- Says whose a client is, for as long as it says so again, or with 0 takes that back.
-- Safe to repeat. One that arrives late ends by itself.
-- KEYS[1] the client's own key   ARGV[1] who it is, ARGV[2] how long that lasts in ms
-- Answers {1}.
redis.call('set', KEYS[1], ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[2])
return {1}
