-- Looks how long a permit lasts.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] id
-- Answers {1, ms left, or -1 without end}, or {0} when nobody has it.
local at = tonumber(redis.call('zscore', KEYS[2], ARGV[2]))
if not at then
  return {0}
end
return {1, at < never and at - now or -1}
