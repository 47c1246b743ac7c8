-- Gives back what a request took, and keeps it from taking anything if it is still on its way. Safe to repeat.
-- KEYS[1..2], ARGV[1] as above, ARGV[2] receipt of the request, ARGV[3] its number, ARGV[4] life of the receipt in ms,
-- ARGV[5...] ids, last ARGV publish or spublish
-- Answers {1} when there was something to give back, else {0}.
redis.call('set', ARGV[2], ARGV[3] .. ' 0', 'px', ARGV[4])
return {give(5, #ARGV - 1)}
