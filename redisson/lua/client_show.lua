-- Says whose a client is and what it holds, for as long as it says so again, or with 0 takes that back.
-- Safe to repeat. One that arrives late ends by itself.
-- KEYS[1] the client's own key   ARGV[1] how long that lasts in ms, then names and texts, last ARGV publish or spublish
-- Answers {1}.
redis.call('del', KEYS[1])
for i = 2, #ARGV - 1, 2 do
  redis.call('hset', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('pexpire', KEYS[1], ARGV[1])
return {1}
