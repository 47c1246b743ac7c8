-- Looks whether somebody who has nothing of a lock could take it now. It changes nothing.
-- KEYS[1] lock; of a fair lock KEYS[2] queue, KEYS[3] deadlines; of a permit for each level its number of free permits, its taken permits with the end
-- of each, and the mark of a semaphore that was made here
-- ARGV[1] kind; one that is not here is exclusive; of a permit for each level how many there are if the semaphore is made here
-- Answers what the script that takes the lock would: {1} if it could, {0, how long to wait in ms} when others have it, where -1
-- is not known, and behind it which level has no permit, {-1, kind} when it is held exclusively (0), for reading (2) or writing (3).
local kind, numbers = ARGV[1], {exclusive = 0, read = 2}

-- turn is how long in ms the first waiter that is alive has the turn, and nil without one.
local function turn()
  for i = 0, redis.call('llen', KEYS[2]) - 1 do
    local left = (redis.call('zscore', KEYS[3], redis.call('lindex', KEYS[2], i)) or now + 30000) - now
    if left > 0 then
      return left
    end
  end
end

-- permit is the answer for a level that has no permit: what is left, and what is taken and not over.
local function permit(level, free)
  local taken = KEYS[3 * level - 1]
  if free and redis.call('exists', KEYS[3 * level]) == 0 then
    free = assert(tonumber(free), 'value is not a number') + redis.call('zcount', taken, '-inf', now)
  else
    free = ARGV[level + 1] - redis.call('zcount', taken, '(' .. now, '+inf')
  end
  if free < 1 then
    local first = redis.call('zrangebyscore', taken, '(' .. now, '+inf', 'withscores', 'limit', 0, 1)
    return {0, first[2] and math.min(first[2] - now, 2 ^ 52) or -1, level}
  end
end

for level = 1, kind == 'permit' and math.floor(#KEYS / 3) or 0 do
  local free = redis.pcall('get', KEYS[3 * level - 2])
  if type(free) == 'table' then
    KEYS[1] = KEYS[3 * level - 2]
    break
  end
  local busy = permit(level, free)
  if busy or level == math.floor(#KEYS / 3) then
    return busy or {1}
  end
end

-- held is 'read' or 'write' for a read/write lock, and false if there is no lock.
local held = redis.call('hget', KEYS[1], 'mode') or redis.call('exists', KEYS[1]) == 1 and 'exclusive'
local left = not held and kind == 'fair' and turn()
if left then
  return {0, left}
elseif not held or kind == 'read' and held == 'read' then
  return {1}
elseif kind ~= 'permit' and (kind == 'read' or kind == 'write') == (held ~= 'exclusive') then
  return {0, redis.call('pttl', KEYS[1])}
end
return {-1, numbers[held] or 3}
