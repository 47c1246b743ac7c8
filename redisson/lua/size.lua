-- Counts the keys of a server.
-- KEYS[1] any of the server's
-- Answers {how many there are}.
return {redis.call('dbsize')}
