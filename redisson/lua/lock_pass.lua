-- Takes a member who waits no more out of the wake list, and wakes others if the lock is free. If who has it will tell nobody of the list,
-- those who stand in front look now, and hear Redisson's channel then. A list with notes alone goes: a release of Redisson's would leave it.
-- Safe to repeat: it may wake one too many.
-- KEYS[1] lock, KEYS[2] wake list or nothing   ARGV[1] member, ARGV[2] channel, last ARGV publish or spublish
-- Answers {1}.
if KEYS[2] then
  redis.call('zrem', KEYS[2], ARGV[1])
  local first, second = front(KEYS[2])
  if redis.call('exists', KEYS[1]) == 0 then
    announce(KEYS[2], ARGV[#ARGV], ARGV[2])
  elseif not first then
    try('del', KEYS[2])
  elseif not wakes(KEYS[1]) then
    for _, member in ipairs({first, second}) do
      say(ARGV[#ARGV], ARGV[2], member, '2')
    end
  end
end
return {1}
