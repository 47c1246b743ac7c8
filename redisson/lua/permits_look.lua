-- Looks how many permits there are, and how long one of them lasts.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] id, or nothing
-- Answers {free permits, taken permits, ms left of that one, or -1 without end, or 0 when nobody has it}.
local at = tonumber(redis.call('zscore', KEYS[2], ARGV[2]) or now)
return {free, redis.call('zcard', KEYS[2]), at < never and at - now or -1}
