-- Removes waiters from the queue who wait no more, and notifies who is the head then if it is its turn. Lists those of one client.
-- Safe to repeat.
-- ARGV[1] the client's id with a colon, ARGV[2] channel, to which the head's id is added, ARGV[3...] who waits no more, last ARGV publish or
-- spublish
-- Answers {1, {the head if the lock is free, or '', who of this client stands in the queue: 1,000 at most}}.
local over, own = {}, {''}
for i = 3, #ARGV - 1 do
  over[ARGV[i]] = true
end
if next(over) then
  drop(function(waiter) return over[waiter] end, now)
end
local head = purge()
if head and redis.call('exists', KEYS[1]) == 0 then
  own[1] = head
  if next(over) then
    redis.call(ARGV[#ARGV], ARGV[2] .. ':' .. head, '0')
  end
end
for _, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if string.sub(waiter, 1, #ARGV[1]) == ARGV[1] and #own <= 1000 then
    own[#own + 1] = waiter
  end
end
return unchanged({1, own})
