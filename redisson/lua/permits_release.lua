-- Gives one permit back. Safe to repeat: nobody gets an id twice.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] id
-- Answers {1} when given back, {0} when nobody has it.
return {give(2, 2)}
