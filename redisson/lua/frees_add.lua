-- Notes that a lock was freed by hand.
-- KEYS[1] stream   ARGV[1] what is to be known of that, ARGV[2] how many are remembered
-- Answers {1}.
redis.call('xadd', KEYS[1], 'maxlen', ARGV[2], '*', 'freed', ARGV[1])
return {1}
