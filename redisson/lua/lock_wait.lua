-- Takes a lock for somebody who hears on its member's channel, or puts the member into the wake list, where it stays until it has the lock.
-- Safe to repeat.
-- KEYS those of the script that takes it, last KEYS the wake list   ARGV[1] to ARGV[3] as there, ARGV[4] how many keys there are with the wake
-- list, ARGV[5] member, ARGV[6] since when it waits in µs, or 0, ARGV[7] '1' if it was told, ARGV[8] how long the list lasts in ms,
-- ARGV[9] channel, last ARGV publish or spublish
-- Answers as the script that takes it, and with {0, time to live in ms, place, how many wait, since when, 1 if who has it wakes the list}.
-- Without a list the place is -1. A free lock is refused for as long as another one has to come who was told.
local keys, wake, me = {unpack(KEYS)}, nil, ARGV[5]
if #keys == tonumber(ARGV[4]) then
  wake = table.remove(keys)
end

-- join puts the member into the list, unless it is there, and returns the answer that says so. The time at which it came has the number of
-- who comes, up to 1,000, in place of its µs: so those who come one after the other do not look one after the other.
local function join(ttl)
  local since = wake and try('zscore', wake, me) or ARGV[6]
  if since == '0' then
    local last = try('zrange', wake, -1, -1, 'withscores') or {}
    since = string.format('%.0f', math.floor(micros() / 1000) * 1000 + ((last[2] or 0) + 1) % 1000)
  end
  if not wake or not try('zadd', wake, 'nx', since, me) then
    return {0, ttl, -1, 0, 0, 0}
  end
  local left = try('pttl', wake)
  if left and left < tonumber(ARGV[8]) then
    try('pexpire', wake, ARGV[8])
  end
  return {0, ttl, try('zcount', wake, '(0', '(' .. since) or 0, try('zcount', wake, '(0', '+inf') or 1, tonumber(since), wakes(KEYS[1]) and 1 or 0}
end

if wake and ARGV[7] ~= '1' and redis.call('exists', KEYS[1]) == 0 then
  local told = tonumber(try('zscore', wake, '') or 0) + micros()
  if told >= 0 and told < grace and front(wake) ~= me then
    redis.call('hdel', KEYS[1], '') -- changes nothing; see scripts.go
    return join(math.ceil((grace - told) / 1000))
  end
end
local answer = take(keys, ARGV)
if type(answer) == 'table' and answer[1] == 0 then
  return join(answer[2])
end
if not wake or type(answer) == 'table' and answer[1] ~= 1 then
  return answer
end
-- If this is a look of one in the list, who stands in front has not come. It learns that it stands there no more.
for _, member in ipairs(ARGV[7] ~= '1' and try('zscore', wake, me) and try('zrange', wake, 0, 101) or {}) do
  if member == me then
    break
  end
  if member ~= '' and member ~= '-' then
    try('zrem', wake, member)
    say(ARGV[#ARGV], ARGV[9], member, '1')
  end
end
try('zrem', wake, me)
return answer
