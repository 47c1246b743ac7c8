-- Tells how long a permit lasts, after giving it a new lease if there is one in the arguments.
-- KEYS[1..3] as above   ARGV[1] id, ARGV[2] new lease in ms, 0 without end, or '' to leave it
-- Answers {1, ms left, or -1 without end}, or {0} when nobody has it.
local at = redis.call('zscore', KEYS[2], ARGV[1])
if not at then
  return {0}
end
if ARGV[2] ~= '' then
  at = ends(ARGV[2])
  redis.call('zadd', KEYS[2], at, ARGV[1])
end
at = tonumber(at)
return {1, at < never and at - now or -1}
