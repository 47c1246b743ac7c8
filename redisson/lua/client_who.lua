-- Reads whose clients are, and what they say of holders.
-- KEYS[1] the own key of one of the clients   ARGV for each client, all of this server's, its own key, a number of holders, and their ids, last
-- ARGV publish or spublish
-- Answers {1, {for each client {how long that lasts in ms, whose it is, what it says of each holder}}}.
local said, at = {}, 1

-- text reads a field. It returns nothing if there is none, and of what is too long.
local function text(key, field)
  local size = redis.pcall('hstrlen', key, field)
  local value = type(size) == 'number' and size > 0 and size <= 8192 and redis.pcall('hget', key, field)
  return type(value) == 'string' and value or ''
end

while at < #ARGV do
  local key, last = ARGV[at], at + 1 + ARGV[at + 1]
  local left = redis.pcall('pttl', key)
  local one = {type(left) == 'number' and left or 0, text(key, 'who')}
  for i = at + 2, last do
    table.insert(one, text(key, ARGV[i]))
  end
  table.insert(said, one)
  at = last + 1
end
return {1, said}
