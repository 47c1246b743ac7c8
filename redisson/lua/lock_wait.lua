-- Takes a lock, or permits, for somebody who hears on its member's channel, or puts the member into the wake list, where it stays until it has them.
-- Safe to repeat.
-- KEYS those of the script that takes it, last KEYS the wake list   ARGV those of that script, then how many keys there are with the wake
-- list, which of them has those who hold what the list is of, the member, since when it waits in µs, or 0, '1' if it was told, how long the list
-- lasts in ms, the channel, and publish or spublish
-- Answers as the script that takes it, and with {0, time to live in ms, place, how many wait, since when, 1 if who has it wakes the list, which level
-- has no permit}. Without a list the place is -1. What is free is refused for as long as others have to come who were told.
local keys, wake, last = {unpack(KEYS)}, nil, #ARGV
local holders, me, since, told = tonumber(ARGV[last - 6]), ARGV[last - 5], ARGV[last - 4], ARGV[last - 3] == '1'
if #keys == tonumber(ARGV[last - 7]) then
  wake = table.remove(keys)
end

-- join puts the member into the list, unless it is there, and returns the answer that says so. The time at which it came has the number of
-- who comes, up to 1,000, in place of its µs: so those who come one after the other do not look one after the other.
local function join(ttl, level)
  since = wake and try('zscore', wake, me) or since
  if wake and since == '0' then
    local newest = try('zrange', wake, -1, -1, 'withscores') or {}
    since = string.format('%.0f', math.floor(micros() / 1000) * 1000 + ((newest[2] or 0) + 1) % 1000)
  end
  if not wake or not try('zadd', wake, 'nx', since, me) then
    return {0, ttl, -1, 0, 0, 0, level}
  end
  local left = try('pttl', wake)
  if left and left < tonumber(ARGV[last - 2]) then
    try('pexpire', wake, ARGV[last - 2])
  end
  local wakes = wakes(keys[holders]) and (holders == 1 or redis.call('exists', keys[holders + 1]) == 1)
  return {0, ttl, try('zcount', wake, '(0', '(' .. since) or 0, try('zcount', wake, '(0', '+inf') or 1, tonumber(since), wakes and 1 or 0, level}
end

-- barred is for how long in ms the member has to leave the permits of a level, or the lock, to others: so many are free. It returns nothing
-- if it need not.
function keys.barred(level, free)
  local left = level == holders and wake and not told and grace - micros() - tonumber(try('zscore', wake, '') or 0)
  if left and left > 0 and left <= grace then
    local own = try('zscore', wake, me)
    local ahead = try('zcount', wake, '(0', own and '(' .. own or '+inf') or 0
    return ahead >= free and math.ceil(left / 1000)
  end
end

local answer = take(keys, ARGV)
if type(answer) == 'table' and answer[1] == 0 then
  wake = not (answer[3] and 3 * answer[3] - 1 ~= holders) and wake or nil -- none if it is another level that is full
  return join(answer[2], answer[3] or 0)
end
if not wake or type(answer) == 'table' and answer[1] ~= 1 then
  return answer
end
-- If this is a look of one in the list, who stands in front has not come. It learns that it stands there no more.
for _, member in ipairs(not told and try('zscore', wake, me) and try('zrange', wake, 0, 101) or {}) do
  if member == me then
    break
  end
  if member ~= '' and member ~= '-' then
    try('zrem', wake, member)
    say(ARGV[last], ARGV[last - 1], member, '1')
  end
end
try('zrem', wake, me)
return answer
