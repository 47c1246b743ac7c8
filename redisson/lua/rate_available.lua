-- KEYS[1..5] as above
-- Answers {1, permits that may be taken now}; {-1} without a rate.
if not known then
  return {-1}
end
return {1, math.max(0, value)}
