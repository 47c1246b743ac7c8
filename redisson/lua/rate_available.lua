-- KEYS[1..5] as above
-- Answers {1, permits that may be taken now}; {-1, 0} without a rate.
return {1, value}
