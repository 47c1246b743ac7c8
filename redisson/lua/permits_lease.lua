-- Answers how long a permit lasts, after giving it a new lease if there is one in the arguments.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] id, ARGV[3] new lease in ms, 0 without end, or '' to leave it
-- Answers {1, ms left, or -1 without end}, or {0} when nobody has it.
local at = redis.call('zscore', KEYS[2], ARGV[2])
if not at then
  return {0}
end
if ARGV[3] ~= '' then
  at = ends(ARGV[3])
  redis.call('zadd', KEYS[2], at, ARGV[2])
end
at = tonumber(at)
return {1, at < never and at - now or -1}
