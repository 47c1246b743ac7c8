-- Prolongs a permit that is still taken. Never takes one, and never shortens its lease.
-- ARGV[2] lease in ms
-- Answers {1} when it lasts at least that long, {0} when it is not taken any more.
if not taken then
  return {0}
end
if tonumber(taken) < now + ARGV[2] then
  keep(tonumber(ARGV[2]))
end
return {1}
