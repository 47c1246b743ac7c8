-- Reads what was freed by hand.
-- KEYS[1] stream   ARGV[1] how many of the last
-- Answers {1, {for each {when, {'freed', what is known of it}}}}.
return {1, redis.call('xrevrange', KEYS[1], '+', '-', 'count', ARGV[1]) or {}}
