-- KEYS[1..2], ARGV[1] as above
-- Answers {free permits, taken permits}.
return {free, redis.call('zcard', KEYS[2])}
