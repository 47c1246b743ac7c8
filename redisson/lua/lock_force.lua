-- Frees a lock whoever holds it, and notifies waiters: of a fair lock the head of the queue, which stays. A free lock stays silent.
-- KEYS[1] lock, KEYS[2] wake list or nothing; of a fair lock KEYS[2] queue, KEYS[3] deadlines   ARGV[1] channel, to which a head's id is
-- added, or nothing, ARGV[2] message, ARGV[3] the mode that a read/write lock must be in, or nothing, then the receipt
-- Answers {1, those who held it} when there was such a lock, else {0, {}}.
if ARGV[3] ~= '' and redis.call('hget', KEYS[1], 'mode') ~= ARGV[3] then
  return done(0, {})
end
local told, channel = holders(), ARGV[1]
if KEYS[3] then
  local head = purge()
  channel = head and channel .. ':' .. head or ''
end
if redis.call('del', KEYS[1]) == 0 then
  return done(0, {})
end
if channel ~= '' and (KEYS[3] or ARGV[3] ~= '') then
  redis.call(ARGV[#ARGV], channel, ARGV[2])
elseif channel ~= '' then
  announce(KEYS[2], ARGV[#ARGV], channel, false, true)
end
return done(1, told)
