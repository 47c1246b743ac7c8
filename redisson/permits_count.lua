-- KEYS[1..3] as above
-- Answers {free permits, taken permits}.
return {free, redis.call('zcard', KEYS[2])}
