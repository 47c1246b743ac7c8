-- Looks at a lock, of a read/write lock at one side.
-- KEYS[1] lock   ARGV[1] 'read', 'write', or nothing
-- Answers {1 if held or 0, time to live in ms: -2 when there is no lock, -1 when it has no end}.
local held = redis.call('exists', KEYS[1])
if held == 1 and ARGV[1] ~= '' then
  local mode = redis.call('hget', KEYS[1], 'mode')
  -- A writer may also read. Then there are the mode, the writer, and the reader.
  held = (mode == ARGV[1] or mode and ARGV[1] == 'read' and redis.call('hlen', KEYS[1]) > 2) and 1 or 0
end
return {held, redis.call('pttl', KEYS[1])}
