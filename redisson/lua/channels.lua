-- Lists channels that somebody listens to at this server. It changes nothing.
-- KEYS[1] any of the server's   ARGV[1] how many at most, ARGV[2] and so on: patterns, last ARGV publish or spublish
-- Answers {1, {a list of channels for each pattern}}.
local found = {}
for i = 2, #ARGV - 1 do
  local all, some = redis.call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardchannels' or 'channels', ARGV[i]), {}
  for j = 1, math.min(#all, ARGV[1]) do
    some[j] = all[j]
  end
  found[i - 1] = some
end
return {1, found}
