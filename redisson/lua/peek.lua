-- Looks whether somebody who has nothing of a lock could take it now. It changes nothing.
-- KEYS[1] lock; of a fair lock KEYS[2] queue, KEYS[3] deadlines; of a permit KEYS[2] taken permits with the end of each
-- ARGV[1] kind; one that is not here is exclusive; ARGV[2] permits of a new semaphore
-- Answers what the script that takes the lock would: {1} if it could, {0, how long to wait in ms} when others have it, where -1
-- is not known, {-1, kind} when it is held exclusively (0), for reading (2) or writing (3).

-- mode is 'read' or 'write' for a read/write lock that is held, and false for any other lock.
local function mode() return redis.call('hget', KEYS[1], 'mode') end

local function busy() return {0, redis.call('pttl', KEYS[1])} end

local function free() return redis.call('exists', KEYS[1]) == 0 end

-- turn is how long in ms the first waiter that is alive has the turn, and nil without one.
local function turn()
  local i, left = 0, 0
  local waiter = redis.call('lindex', KEYS[2], 0)
  while waiter and left <= 0 do
    left = (redis.call('zscore', KEYS[3], waiter) or now + 30000) - now
    i = i + 1
    waiter = redis.call('lindex', KEYS[2], i)
  end
  return left > 0 and left
end

local kinds = {}

function kinds.exclusive()
  if free() then
    return {1}
  end
  local held = mode()
  return held and {-1, held == 'read' and 2 or 3} or busy()
end

function kinds.fair()
  local left = free() and turn()
  return left and {0, left} or kinds.exclusive()
end

function kinds.read()
  local held = mode()
  if held == 'write' then
    return busy()
  end
  return (held or free()) and {1} or {-1, 0}
end

function kinds.write()
  if free() then
    return {1}
  end
  return mode() and busy() or {-1, 0}
end

function kinds.permit()
  local left = redis.pcall('get', KEYS[1])
  if type(left) == 'table' then
    local held = mode()
    return {-1, held == 'read' and 2 or held and 3 or 0}
  end
  if left then
    left = assert(tonumber(left), 'value is not a number') + redis.call('zcount', KEYS[2], '-inf', now)
  else
    left = ARGV[2] - redis.call('zcount', KEYS[2], '(' .. now, '+inf')
  end
  if left > 0 then
    return {1}
  end
  local first = redis.call('zrangebyscore', KEYS[2], '(' .. now, '+inf', 'withscores', 'limit', 0, 1)
  return {0, first[2] and math.min(first[2] - now, 2 ^ 52) or -1}
end

return (kinds[ARGV[1]] or kinds.exclusive)()
