-- Prolongs a permit that is still taken. Never takes one, and never shortens its lease.
-- ARGV[3] lease in ms
-- Answers {1} when it lasts at least that long, {0} when it is not taken any more.
if not taken then
  return {0}
end
if tonumber(taken) < now + ARGV[3] then
  keep(tonumber(ARGV[3]))
end
return {1}
