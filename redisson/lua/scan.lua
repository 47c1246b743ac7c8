-- Looks for what can belong to objects, a part of the server's keys at a time, or its channels. It changes nothing.
-- KEYS[1] any of the server's   ARGV[1] cursor, ARGV[2] pattern, ARGV[3] type, or channel, ARGV[4] how many keys to look at, last ARGV publish
-- or spublish
-- Answers {1, {next cursor, list of the names of those objects}}.
local names = {}

-- offer answers a name if its key has a type, as far as the user may know, and reports whether it does.
local function offer(name, sort)
  local found = name and redis.pcall('type', name) or {}
  local fits = found.ok == sort or found.err and doubtful(found.err)
  if fits then
    table.insert(names, name)
  end
  return fits
end

-- owners offers the names of which base can be what a suffix is added to, or what follows a prefix. It reports whether one fits, and returns
-- the likely one.
local function owners(base, sort)
  local whole, inner = string.match(base, '.*{.*'), string.match(base, '^{(.*)}$')
  local fits = offer(whole, sort)
  return offer(inner, sort) or fits, inner or whole
end

local can = {}

function can.hash(key)
  if seems(key) then
    table.insert(names, key)
  end
end

-- The permits of a semaphore have its number beside them.
function can.zset(key) owners(string.sub(key, 1, -#ARGV[2]), 'string') end

-- The queue of a fair lock may be that of a free one.
function can.list(key)
  local fits, likely = owners(string.sub(key, #ARGV[2]), 'hash')
  if not fits then
    offer(likely, 'none')
  end
end

-- Somebody listens for permits, or for the end of a latch.
function can.channel(channel)
  owners(string.match(channel, '^redisson_sc:(.*)') or string.match(channel, '^redisson_countdownlatch__channel__(.*)') or '', 'string')
end

local found
if ARGV[3] == 'channel' then
  found = {'0', redis.call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardchannels' or 'channels', ARGV[2])}
else
  found = redis.call('scan', ARGV[1], 'match', ARGV[2], 'type', ARGV[3], 'count', ARGV[4])
end
for i = 1, math.min(#found[2], 10000) do
  if #found[2][i] <= 65536 then
    can[ARGV[3]](found[2][i])
  end
end
return {1, {found[1], names}}
