-- Gives permits back, all or none.
-- KEYS[1..2], ARGV[1] as above, ARGV[2...] ids, each of them once, then the receipt
-- Answers {1} when given back, {0} when nobody has one of them.
return done(give(2, #ARGV - 4))
