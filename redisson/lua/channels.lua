-- Lists channels that somebody listens to at this server. It changes nothing.
-- KEYS[1] any of the server's   ARGV[1] pattern, ARGV[2] how many at most, last ARGV publish or spublish
-- Answers {how many there are, list of channels}.
local all = redis.call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardchannels' or 'channels', ARGV[1])
local some = {}
for i = 1, math.min(#all, ARGV[2]) do
  some[i] = all[i]
end
return {#all, some}
