-- Makes the lease of a permit that is taken at least so long.
-- Safe to repeat, at any time: it takes no permit and shortens no lease.
-- ARGV[3] lease in ms
-- Answers {1, lease left in ms, 0} when done, {0} when the permit is not taken any more.
if not taken then
  return {0}
end
return {1, keep(tonumber(ARGV[3])), 0}
