-- KEYS[1..5] as above
-- Answers {1, permits that may be taken now, permits of the rate, its interval in ms, 1 if each client has its own or 0, life of the
-- keys in ms or 0}; {-1} without a rate.
if not known then
  return {-1}
end
return {1, math.max(0, value), rate, interval, kind == '1' and 1 or 0, math.min(keep, 2 ^ 53)}
