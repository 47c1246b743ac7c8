-- Makes the lease of the permits that are taken at least so long.
-- Safe to repeat, at any time: it takes no permit and shortens no lease.
-- ARGV[3] lease in ms
-- Answers {1, lease left in ms, 0} when done, {0} when one of the permits is not taken any more.
local lease
for _, level in ipairs(not gone and levels or {}) do
  local left = keep(level, ARGV[1], tonumber(ARGV[3]))
  lease = math.min(lease or left, left)
end
return gone and {0} or {1, lease, 0}
