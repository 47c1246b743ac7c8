-- Tells a client something about one of its holders.
-- KEYS[1] a key by which the script gets to where the message is to be published   ARGV[1] channel, ARGV[2] message, last ARGV publish or
-- spublish
-- Answers {how many were told}.
return {redis.call(ARGV[#ARGV], ARGV[1], ARGV[2])}
