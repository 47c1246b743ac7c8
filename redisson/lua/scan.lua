-- Looks for keys of one type, a part of the server's at a time. It changes nothing.
-- KEYS[1] any of the server's   ARGV[1] cursor, ARGV[2] pattern, ARGV[3] type, ARGV[4] how many keys to look at
-- Answers {1, {next cursor, list of those that can belong to objects}}.
local can = {}

function can.hash(key) return seems(key) end

-- The permits of a semaphore have its number beside them.
function can.zset(key)
  local base = string.sub(key, 1, -#':timeout' - 1)
  for _, name in ipairs({string.match(base, '.*{.*'), string.match(base, '^{([^{]*)}$')}) do
    local there = redis.pcall('exists', name)
    if type(there) == 'number' and there > 0 or type(there) == 'table' and doubtful(there.err) then
      return true
    end
  end
  return false
end

function can.list() return true end

local found = redis.call('scan', ARGV[1], 'match', ARGV[2], 'type', ARGV[3], 'count', ARGV[4])
local keys = {}
for _, key in ipairs(found[2]) do
  if #key <= 65536 and can[ARGV[3]](key) then
    table.insert(keys, key)
  end
end
return {1, {found[1], keys}}
